import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Ask, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api?.stop());

const byUser = (ask: Ask = {}): Ask => ({ key: user.key, ...ask });
const minimal = { dst: '203.0.113.7', filter: 20 };

async function create(body: object, key = user.key) {
  const reply = await api.call('createFilter', {}, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

test('a created filter is answered as canonicalised, with defaults, and reads back the same', async () => {
  const body = {
    ratelimit: 25000,
    port: { src: { start: 1024, end: 65535 }, dst: { start: 51820 } },
    src: { start: '2001:DB8:ffff:0::', end: '2001:db8:ffff::ffff' },
    filter: 20,
    dst: '2001:DB8:7:0:0:0:0:1/128',
    expires_at: '2099-01-01T00:00:00+01:00',
  };
  const created = await create(body);
  const { uuid, owner_uuid, state, applied, created_at, updated_at, state_reason, ...fields } = created;
  assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(owner_uuid, user.uuid);
  assert.deepEqual([state, applied, updated_at], ['pending', [], created_at]);
  assert.match(state_reason, /router/i);
  assert.deepEqual(fields, {
    ...body,
    dst: '2001:db8:7::1',
    priority: 1000,
    src: { start: '2001:db8:ffff::', end: '2001:db8:ffff::ffff' },
    expires_at: '2098-12-31T23:00:00.000Z',
  });
  const read = await api.call('readFilter', { uuid: uuid.toUpperCase() }, byUser());
  assert.deepEqual(read.body, [created]);
});
