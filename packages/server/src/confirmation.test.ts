/** Changes that await confirmation, one after another: what stands when none, the last, or a plain one has the word. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, startApi } from './http/testing/api-fixture.ts';
import { sweepOnce } from './sweep/sweeper.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
});
after(() => api?.stop());

let last = 0;
const freshAddress = () => `203.0.113.${++last}`;
const fields = (priority: number) => ({ protocol: 'udp', action: 'drop', priority });

async function create(dst: string, priority = 1, key = user.key): Promise<string> {
  const reply = await api.call('createFirewallRule', {}, { key, body: { dst, ...fields(priority) } });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.uuid;
}

async function patch(uuid: string, body: object, key = user.key): Promise<string> {
  const reply = await api.call('changeFirewallRule', { uuid }, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.change_uuid;
}

async function put(dst: string, priority: number, more: object = {}): Promise<string> {
  const body = { rules: [fields(priority)], ...more };
  const reply = await api.call('replaceFirewallRules', {}, { key: user.key, query: `?dst=${dst}`, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.change_uuid;
}

const confirm = (change_uuid: string) => api.call('confirmChange', { change_uuid }, { key: user.key });
const within = { confirm_within: 60 };

/** Nobody confirms any more. */
async function timeIsOver(): Promise<void> {
  await api.database.pool.query(`update confirmation set deadline = now() - interval '1 second'`);
  for (let sweeps = 0; sweeps < 3; sweeps++) await sweepOnce(api.database.pool);
}

/** Priorities of the rules that stand, in order. */
async function standing(dst: string): Promise<number[]> {
  const { rows } = await api.database.pool.query(
    `select (fields->>'priority')::int as priority from firewall_rule
      where dst = $1::cidr and deletion_marked_at is null order by 1`,
    [dst],
  );
  return rows.map(({ priority }) => priority);
}

test('a rule that was deleted after an unconfirmed change stays deleted', async () => {
  const dst = freshAddress();
  const uuid = await create(dst);
  await patch(uuid, { priority: 2, ...within });
  assert.equal((await api.call('deleteFirewallRule', { uuid }, { key: user.key })).status, 200);
  await sweepOnce(api.database.pool);
  assert.equal((await api.call('readFirewallRule', { uuid }, { key: user.key })).status, 404);
  await timeIsOver();
  assert.deepEqual(await standing(dst), []);
});

test('a set that replaced an unconfirmed one stands alone, plainly or confirmed', async () => {
  for (const confirmed of [false, true]) {
    const dst = freshAddress();
    await create(dst, 1);
    const first = await put(dst, 2, within);
    const second = await put(dst, 3, confirmed ? within : {});
    if (confirmed) {
      const refused = await confirm(first);
      assert.equal(refused.status, 409);
      assert.ok(refused.body.message.includes(second), refused.text);
      assert.equal((await confirm(second)).status, 200);
    }
    await timeIsOver();
    assert.deepEqual(await standing(dst), [3]);
  }
});

test('of two sets that nobody confirmed nothing stays: the one before them is back', async () => {
  const dst = freshAddress();
  await create(dst, 1);
  await put(dst, 2, within);
  await put(dst, 3, within);
  await timeIsOver();
  assert.deepEqual(await standing(dst), [1]);
});

test('of two changes that nobody confirmed nothing stays, of a plain one between them all does', async () => {
  const [dst, other] = [freshAddress(), freshAddress()];
  const uuid = await create(dst, 1);
  await patch(uuid, { priority: 2, ...within });
  await patch(uuid, { priority: 3, ...within });
  const spoken = await create(other, 1);
  await patch(spoken, { priority: 2, ...within });
  await patch(spoken, { priority: 4 });
  await patch(spoken, { priority: 3, ...within });
  await timeIsOver();
  assert.deepEqual([await standing(dst), await standing(other)], [[1], [4]]);
});

test("a provider's wide rule returns to what it was, although a user holds a part of it by now", async () => {
  const uuid = await create('203.0.113.32/27', 1, provider.key);
  await patch(uuid, { descr: 'tried', ...within }, provider.key);
  await api.user(provider, ['203.0.113.40/32']);
  await timeIsOver();
  assert.deepEqual(await standing('203.0.113.32/27'), [1]);
  const { body } = await api.call('readFirewallRule', { uuid }, { key: provider.key });
  assert.equal(body[0].descr, undefined);
});

test('what an unconfirmed change deleted does not come back to addresses that were taken away and given again', async () => {
  const dst = freshAddress();
  await create(dst, 1);
  await put(dst, 2, within);
  const ips = [`${dst}/32`];
  for (const id of ['deleteUserIps', 'addUserIps']) {
    const reply = await api.call(id, {}, { key: provider.key, body: { user_uuid: user.uuid, ips } });
    assert.equal(reply.status, 200, reply.text);
  }
  await timeIsOver();
  assert.deepEqual(await standing(dst), []);
});
