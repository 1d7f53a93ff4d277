import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { pruneReleased } from '../../events/prune-events.ts';
import type { Database } from '../../store/database.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { createDispatcher, type Dispatcher, type DispatcherServices } from './dispatcher.ts';
import { createTargetJudge } from './target.ts';
import { type Received, type Receiver, startReceiver } from './testing/receiver.ts';

let postgres: TestPostgres;
let database: Database;
let provider: SeededProvider;
let user: string;
let operator: string;
let running: { readonly dispatcher: Dispatcher; news(): void; stop(): Promise<void> } | undefined;
const receivers: Receiver[] = [];

before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());
beforeEach(async () => {
  database = await postgres.createDatabase();
  provider = await seedProvider(database.pool);
  [user, operator] = [newUuid(), newUuid()];
  await query(
    `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
      values ($1, 'user', $2, 'u', 'user', 'u@example.net', 'x')`,
    [user, provider.uuid],
  );
  await query(`insert into account (uuid, role, name) values ($1, 'operator', 'o')`, [operator]);
  await query(`insert into event_log (epoch, log, xid, position) values ('0badcafe', 'test', '1', 0)`);
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

const query = async <R extends object>(text: string, values: unknown[] = []) =>
  (await database.pool.query(text, values)).rows as R[];

const soon = () => 0.05;
const judge = createTargetJudge({ allow: ['127.0.0.0/8'] });

/** A replica that leads. */
async function lead(more: Partial<DispatcherServices> = {}): Promise<Dispatcher> {
  const dispatcher = createDispatcher({ pool: database.pool, judge, retryAfter: soon, ...more });
  const client = await database.connect('test lead');
  const stopping = new AbortController();
  const { signal } = stopping;
  const runs = dispatcher.tasks.map((task) => task.run({ client, signal }));
  running = {
    dispatcher,
    news() {
      for (const { news } of dispatcher.tasks) news?.();
    },
    async stop() {
      stopping.abort();
      await Promise.all(runs).finally(() => client.end());
    },
  };
  return dispatcher;
}

/** As another replica tells that it was changed. */
function changed(webhook: string): void {
  for (const { listeners } of running?.dispatcher.tasks ?? []) listeners?.levee_webhook?.(`anew ${webhook}`);
}

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  receivers.push(started);
  return started;
}

const secret = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;

async function webhook(
  url: string,
  more: { owner?: string; role?: string; events?: string[]; key?: string } = {},
): Promise<string> {
  const uuid = newUuid();
  const { owner = user, role = 'user', events = ['*'], key } = more;
  await query(
    `insert into webhook (uuid, owner_uuid, role, url, events, secret, key_uuid, after_sequence, created_at, updated_at)
      values ($1, $2, $3, $4, $5, $6, $7, (select coalesce(max(sequence), 0) from event), now(), now())`,
    [uuid, owner, role, url, events, secret(1), key],
  );
  return uuid;
}

/** As the leader writes them. Returns the first one's sequence. */
async function tell(name: string, owner = user, times = 1): Promise<number> {
  const [written] = await query<{ first: number }>(
    `with written as (
        insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
        select $1, gen_random_uuid(), $2, $3, json_build_object('descr', 'é ✓') from generate_series(1, $4)
        returning sequence
      ) select min(sequence) as first from written`,
    [name, owner, provider.uuid, times],
  );
  running?.news();
  return written?.first ?? 0;
}

interface Delivery {
  readonly uuid: string;
  readonly state: string;
  readonly attempts: readonly { at: string; duration_ms: number; status?: number; error?: string }[];
}
const deliveries = (of: string) =>
  query<Delivery>(
    'select uuid::text, state, attempts from webhook_delivery where webhook_uuid = $1 order by sequence',
    [of],
  );
const statesOf = async (of: string) => (await deliveries(of)).map(({ state }) => state);
const ended = (of: string, state: string, count = 1) =>
  waitUntil(async () => (await statesOf(of)).filter((each) => each === state).length === count, `${count} ${state}`);
const verified = (received: Received | undefined, by: number) =>
  new Webhook(secret(by)).verify(received?.text ?? '', received?.headers as Record<string, string>) as {
    id: string;
    type: string;
    timestamp: string;
    data: object;
  };

test('an event arrives once, as the stream shows it, with a signature that the library verifies', async () => {
  const target = await receiver();
  const uuid = await webhook(target.url);
  await lead();
  const sequence = await tell('firewall_rule.active');
  await ended(uuid, 'delivered');
  const [received] = target.received;
  const event = verified(received, 1);
  assert.deepEqual(
    [event.id, event.type, event.data],
    [`0badcafe-${sequence}`, 'firewall_rule.active', { descr: 'é ✓' }],
  );
  const [delivery] = await deliveries(uuid);
  assert.equal(received?.headers['webhook-id'], delivery?.uuid);
  assert.equal(received?.headers['content-type'], 'application/json');
  assert.deepEqual(
    delivery?.attempts.map(({ status, error }) => [status, error]),
    [[204, undefined]],
  );
  assert.equal(target.received.length, 1);
  assert.throws(() => verified(received, 2), /No matching signature/);
});

test('each webhook gets the events that it names and that its owner may see', async () => {
  const target = await receiver();
  const at = (path: string) => target.url.replace('/hook', path);
  const sibling = newUuid();
  await query(
    `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
      values ($1, 'user', $2, 's', 'sibling', 's@example.net', 'x')`,
    [sibling, provider.uuid],
  );
  await webhook(at('/user'), { events: ['firewall_rule.*'] });
  await webhook(at('/sibling'), { owner: sibling });
  await webhook(at('/provider'), {
    owner: provider.uuid,
    role: 'provider',
    events: ['attack.ended', 'firewall_rule.failed'],
  });
  await webhook(at('/operator'), { owner: operator, role: 'operator' });
  const disabled = await webhook(at('/disabled'));
  await query('update webhook set disabled = true where uuid = $1', [disabled]);
  await lead();
  for (const name of ['firewall_rule.failed', 'firewall_rule.active', 'attack.ended', 'tunnel.active'])
    await tell(name);
  await tell('firewall_rule.failed', sibling);
  await waitUntil(() => target.received.length === 11, 'all of them');
  const got = (path: string) =>
    target.received
      .filter((received) => received.path === path)
      .map(({ text }) => JSON.parse(text).type)
      .sort();
  assert.deepEqual(got('/user'), ['firewall_rule.active', 'firewall_rule.failed']);
  assert.deepEqual(got('/sibling'), ['firewall_rule.failed']);
  assert.deepEqual(got('/provider'), ['attack.ended', 'firewall_rule.failed', 'firewall_rule.failed']);
  assert.equal(got('/operator').length, 5);
  assert.deepEqual(await statesOf(disabled), []);
});

test('what fails is tried again with the same id and body until it arrives, and the webhook says so meanwhile', async () => {
  const target = await receiver();
  target.answer((response, number) => response.writeHead(number < 4 ? 500 : 200).end());
  const uuid = await webhook(target.url);
  await lead();
  await tell('firewall_rule.active');
  const failing = async () =>
    (await query<{ failing_since: Date | null; failure: string }>('select * from webhook'))[0];
  await waitUntil(async () => (await failing())?.failing_since !== null, 'it is failing');
  assert.equal((await failing())?.failure, 'answered with status 500');
  await ended(uuid, 'delivered');
  assert.equal((await failing())?.failing_since, null);
  assert.equal(new Set(target.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  assert.equal(new Set(target.received.map(({ text }) => text)).size, 1);
  const [delivery] = await deliveries(uuid);
  assert.deepEqual(
    delivery?.attempts.map(({ status }) => status),
    [500, 500, 500, 200],
  );
});

test('what cannot be delivered is given up, and sent once more when that is asked for', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(400).end());
  const uuid = await webhook(target.url);
  const dispatcher = await lead({ retryAfter: ({ attempts }) => (attempts < 3 ? 0.02 : undefined) });
  await tell('firewall_rule.active');
  await ended(uuid, 'given_up');
  assert.equal(target.received.length, 3);
  target.answer((response) => response.writeHead(200).end());
  await query(
    `update webhook_delivery set state = 'pending', next_attempt_at = now(), ended_at = null, round_attempts = 0`,
  );
  changed(uuid);
  await ended(uuid, 'delivered');
  assert.equal((await deliveries(uuid))[0]?.attempts.length, 4);
  assert.ok(dispatcher);
});

test('a replica that takes over goes on with what waits, and knows what the former one began', async () => {
  const port = await receiver();
  const uuid = await webhook(port.url);
  await port.close();
  await lead();
  await tell('firewall_rule.active', user, 3);
  await waitUntil(async () => (await deliveries(uuid)).every(({ attempts }) => attempts.length > 0), 'all were tried');
  await running?.stop();
  const back = await startReceiver(port.port);
  receivers.push(back);
  // As after a kill: an attempt is under way when the process ends, and nothing of it is kept.
  back.answer(() => {});
  await lead();
  await waitUntil(() => back.received.length > 0, 'the first attempt of the next one');
  await running?.stop();
  back.answer((response) => response.writeHead(200).end());
  await lead();
  await ended(uuid, 'delivered', 3);
  const ids = new Set(back.received.map(({ headers }) => headers['webhook-id']));
  assert.deepEqual(ids, new Set((await deliveries(uuid)).map((delivery) => delivery.uuid)));
});

test('a target that never answers has few attempts under way and holds up no other', async () => {
  const [hanging, well] = [await receiver(), await receiver()];
  hanging.answer(() => {});
  const stuck = await webhook(hanging.url);
  const fine = await webhook(well.url);
  await lead({ attemptMilliseconds: 30_000 });
  await tell('firewall_rule.active', user, 100);
  const begin = Date.now();
  await ended(fine, 'delivered', 100);
  assert.ok(Date.now() - begin < 5_000, `${Date.now() - begin} ms`);
  assert.deepEqual([hanging.mostAtOnce, hanging.received.length], [4, 4]);
  assert.ok(well.mostAtOnce <= 4, String(well.mostAtOnce));
  assert.deepEqual(new Set(await statesOf(stuck)), new Set(['pending']));
});

test('a target that is away is tried by one delivery at a time, and gets all of them when it is back', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(502).end());
  const uuid = await webhook(target.url);
  await lead();
  await tell('firewall_rule.active', user, 30);
  await waitUntil(() => target.received.length >= 5, 'the first attempts');
  const before = target.received.length;
  assert.ok(before < 12, `${before} attempts before it is let alone`);
  target.answer((response) => response.writeHead(200).end());
  // Its owner says that it is back.
  changed(uuid);
  await ended(uuid, 'delivered', 30);
});

test('a webhook that is deleted or disabled gets nothing more, and one whose account goes is gone', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(500).end());
  const [deleted, disabled, orphaned] = [
    await webhook(target.url),
    await webhook(target.url),
    await webhook(target.url),
  ];
  await lead({ retryAfter: () => 0.2, forgetting: { everyMilliseconds: 50 } });
  await tell('firewall_rule.active');
  await waitUntil(() => target.received.length === 3, 'each was tried once');
  await query('update webhook set deletion_marked_at = now() where uuid = $1', [deleted]);
  await query('update webhook set disabled = true where uuid = $1', [disabled]);
  await query('update account set deletion_marked_at = now() where uuid = $1', [user]);
  await waitUntil(
    async () => (await query('select from webhook where uuid = $1', [orphaned])).length === 0,
    'it is gone',
  );
  const before = target.received.length;
  const other = await webhook(target.url, { owner: provider.uuid, role: 'provider' });
  await tell('firewall_rule.active');
  await waitUntil(async () => ((await deliveries(other))[0]?.attempts.length ?? 0) >= 2, 'another one is tried twice');
  assert.equal((await deliveries(other))[0]?.attempts.length, target.received.length - before);
});

test('what waits is cancelled when a server says that it is gone', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(410).end());
  const uuid = await webhook(target.url);
  await lead();
  await tell('firewall_rule.active', user, 20);
  await waitUntil(async () => {
    const states = await statesOf(uuid);
    return states.length === 20 && !states.includes('pending');
  }, 'nothing waits');
  const [row] = await query<{ disabled: boolean; disabled_reason: string }>('select * from webhook');
  assert.deepEqual([row?.disabled, row?.disabled_reason], [true, 'Its server answered that it is gone (410).']);
  const audited = await query(`select from audit where operation = 'disable' and object_uuid = $1`, [uuid]);
  assert.equal(audited.length, 1);
  assert.ok(target.received.length <= 4);
});

test('after five days without a delivery the webhook is disabled', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(500).end());
  const uuid = await webhook(target.url);
  await query(`update webhook set failing_since = now() - interval '6 days', failure = 'answered with status 500'`);
  await lead();
  await tell('firewall_rule.active');
  await ended(uuid, 'cancelled');
  const [row] = await query<{ disabled_reason: string }>('select * from webhook');
  assert.equal(row?.disabled_reason, 'Nothing was delivered for 5 days; the last attempt: answered with status 500.');
});

test('for a day after a rotation both secrets sign, and then the new one alone', async () => {
  const target = await receiver();
  const uuid = await webhook(target.url);
  await query(`update webhook set secret = $1, former_secret = $2, former_secret_until = now() + interval '1 day'`, [
    secret(2),
    secret(1),
  ]);
  await lead();
  await tell('firewall_rule.active');
  await ended(uuid, 'delivered');
  assert.ok(verified(target.received[0], 1) && verified(target.received[0], 2));
  await query(`update webhook set former_secret_until = now() - interval '1 second'`);
  await tell('firewall_rule.active');
  await ended(uuid, 'delivered', 2);
  assert.ok(verified(target.received[1], 2));
  assert.throws(() => verified(target.received[1], 1), /No matching signature/);
});

test('a private target is refused at each attempt, whatever it was when the webhook was made', async () => {
  const target = await receiver();
  const uuid = await webhook(target.url);
  await lead({ judge: createTargetJudge(), retryAfter: ({ attempts }) => (attempts < 2 ? 0.01 : undefined) });
  await tell('firewall_rule.active');
  await ended(uuid, 'given_up');
  const [delivery] = await deliveries(uuid);
  assert.match(delivery?.attempts[0]?.error ?? '', /127\.0\.0\.1 is a loopback address/);
  assert.equal(target.received.length, 0);
});

test('old deliveries are forgotten, and with them the events that they kept', async () => {
  const target = await receiver();
  const uuid = await webhook(target.url);
  await lead({ forgetting: { everyMilliseconds: 20 } });
  await tell('firewall_rule.active', user, 2);
  await ended(uuid, 'delivered', 2);
  await query(`update event_log set floor = (select max(sequence) from event)`);
  await query(`update webhook_delivery set ended_at = now() - interval '25 hours'
    where sequence = (select min(sequence) from webhook_delivery)`);
  await waitUntil(async () => (await deliveries(uuid)).length === 1, 'the old one is gone');
  await pruneReleased(database.pool, 0);
  assert.equal((await query('select from event')).length, 1, 'and its event');
});
