import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { pruneReleased } from '../../events/prune-events.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { createTargetJudge } from './target.ts';
import type { Received } from './testing/receiver.ts';
import { secretOf, useWebhookWorld } from './testing/webhook-world.ts';

const world = useWebhookWorld();

const verified = (received: Received | undefined, by: number) =>
  new Webhook(secretOf(by)).verify(received?.text ?? '', received?.headers as Record<string, string>) as {
    id: string;
    type: string;
    timestamp: string;
    data: object;
  };

test('an event arrives once, as the stream shows it, with a signature that the library verifies', async () => {
  const target = await world.receiver();
  const uuid = await world.webhook(target.url);
  await world.lead();
  const sequence = await world.tell('firewall_rule.active');
  await world.ended(uuid, 'delivered');
  const [received] = target.received;
  const event = verified(received, 1);
  assert.deepEqual(
    [event.id, event.type, event.data],
    [`0badcafe-${sequence}`, 'firewall_rule.active', { descr: 'é ✓' }],
  );
  const [delivery] = await world.deliveries(uuid);
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
  const target = await world.receiver();
  const at = (path: string) => target.url.replace('/hook', path);
  const sibling = await world.account('sibling');
  await world.webhook(at('/user'), { events: ['firewall_rule.*'] });
  await world.webhook(at('/sibling'), { owner: sibling });
  await world.webhook(at('/provider'), {
    owner: world.provider.uuid,
    role: 'provider',
    events: ['attack.ended', 'firewall_rule.failed'],
  });
  await world.webhook(at('/operator'), { owner: world.operator, role: 'operator' });
  const disabled = await world.webhook(at('/disabled'));
  await world.query('update webhook set disabled = true where uuid = $1', [disabled]);
  await world.lead();
  for (const name of ['firewall_rule.failed', 'firewall_rule.active', 'attack.ended', 'tunnel.active'])
    await world.tell(name);
  await world.tell('firewall_rule.failed', sibling);
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
  assert.deepEqual(await world.statesOf(disabled), []);
});

test('what fails is tried again with the same id and body until it arrives, and the webhook says so meanwhile', async () => {
  const target = await world.receiver();
  target.answer((response, number) => response.writeHead(number < 4 ? 500 : 200).end());
  const uuid = await world.webhook(target.url);
  await world.lead();
  await world.tell('firewall_rule.active');
  const failing = async () =>
    (await world.query<{ failing_since: Date | null; failure: string }>('select * from webhook'))[0];
  await waitUntil(async () => (await failing())?.failing_since !== null, 'it is failing');
  assert.equal((await failing())?.failure, 'answered with status 500');
  await world.ended(uuid, 'delivered');
  assert.equal((await failing())?.failing_since, null);
  assert.equal(new Set(target.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  assert.equal(new Set(target.received.map(({ text }) => text)).size, 1);
  const [delivery] = await world.deliveries(uuid);
  assert.deepEqual(
    delivery?.attempts.map(({ status }) => status),
    [500, 500, 500, 200],
  );
});

test('what cannot be delivered is given up, and sent once more when that is asked for', async () => {
  const target = await world.receiver();
  target.answer((response) => response.writeHead(400).end());
  const uuid = await world.webhook(target.url);
  await world.lead({ retryAfter: ({ attempts }) => (attempts < 3 ? 0.02 : undefined) });
  await world.tell('firewall_rule.active');
  await world.ended(uuid, 'given_up');
  assert.equal(target.received.length, 3);
  target.answer((response) => response.writeHead(200).end());
  await world.query(
    `update webhook_delivery set state = 'pending', next_attempt_at = now(), ended_at = null, round_attempts = 0`,
  );
  world.wake(uuid, 'anew');
  await world.ended(uuid, 'delivered');
  assert.equal((await world.deliveries(uuid))[0]?.attempts.length, 4);
});

test('a replica that takes over goes on with what waits, and knows what the former one began', async () => {
  const port = await world.receiver();
  const uuid = await world.webhook(port.url);
  await port.close();
  await world.lead();
  await world.tell('firewall_rule.active', world.user, 3);
  await waitUntil(
    async () => (await world.deliveries(uuid)).every(({ attempts }) => attempts.length > 0),
    'all were tried',
  );
  await world.rest();
  const back = await world.receiver(port.port);
  // As after a kill: an attempt is under way when the process ends, and nothing of it is kept.
  back.answer(() => {});
  await world.lead();
  await waitUntil(() => back.received.length > 0, 'the first attempt of the next one');
  await world.rest();
  back.answer((response) => response.writeHead(200).end());
  await world.lead();
  await world.ended(uuid, 'delivered', 3);
  const ids = new Set(back.received.map(({ headers }) => headers['webhook-id']));
  assert.deepEqual(ids, new Set((await world.deliveries(uuid)).map((delivery) => delivery.uuid)));
});

test('a target that never answers has few attempts under way and holds up no other', async () => {
  const [hanging, well] = [await world.receiver(), await world.receiver()];
  hanging.answer(() => {});
  const stuck = await world.webhook(hanging.url);
  const fine = await world.webhook(well.url);
  await world.lead({ attemptMilliseconds: 30_000 });
  await world.tell('firewall_rule.active', world.user, 100);
  const begin = Date.now();
  await world.ended(fine, 'delivered', 100);
  assert.ok(Date.now() - begin < 5_000, `${Date.now() - begin} ms`);
  assert.deepEqual([hanging.mostAtOnce, hanging.received.length], [4, 4]);
  assert.ok(well.mostAtOnce <= 4, String(well.mostAtOnce));
  assert.deepEqual(new Set(await world.statesOf(stuck)), new Set(['pending']));
});

test('a target that is away is tried by one delivery at a time, and gets all of them when it is back', async () => {
  const target = await world.receiver();
  target.answer((response) => response.writeHead(502).end());
  const uuid = await world.webhook(target.url);
  await world.lead();
  await world.tell('firewall_rule.active', world.user, 30);
  await waitUntil(() => target.received.length >= 5, 'the first attempts');
  const before = target.received.length;
  assert.ok(before < 12, `${before} attempts before it is let alone`);
  target.answer((response) => response.writeHead(200).end());
  // Its owner says that it is back.
  world.wake(uuid, 'anew');
  await world.ended(uuid, 'delivered', 30);
});

test('a webhook that is deleted or disabled gets nothing more, and one whose account goes is gone', async () => {
  const target = await world.receiver();
  target.answer((response) => response.writeHead(500).end());
  const [deleted, disabled, orphaned] = [
    await world.webhook(target.url),
    await world.webhook(target.url),
    await world.webhook(target.url),
  ];
  await world.lead({ retryAfter: () => 0.2, forgetting: { everyMilliseconds: 50 } });
  await world.tell('firewall_rule.active');
  await waitUntil(() => target.received.length === 3, 'each was tried once');
  await world.query('update webhook set deletion_marked_at = now() where uuid = $1', [deleted]);
  await world.query('update webhook set disabled = true where uuid = $1', [disabled]);
  await world.query('update account set deletion_marked_at = now() where uuid = $1', [world.user]);
  await waitUntil(
    async () => (await world.query('select from webhook where uuid = $1', [orphaned])).length === 0,
    'it is gone',
  );
  const before = target.received.length;
  const other = await world.webhook(target.url, { owner: world.provider.uuid, role: 'provider' });
  await world.tell('firewall_rule.active');
  await waitUntil(
    async () => ((await world.deliveries(other))[0]?.attempts.length ?? 0) >= 2,
    'another one is tried twice',
  );
  assert.equal((await world.deliveries(other))[0]?.attempts.length, target.received.length - before);
});

test('a lead ends at once, whatever its attempts wait for, and the next one makes them again', async () => {
  const target = await world.receiver();
  target.answer(() => {});
  const hanging = await world.webhook(target.url);
  const nameless = await world.webhook('https://silent.example.net/');
  const silent = createTargetJudge({ allow: ['127.0.0.0/8'], resolve: () => new Promise(() => {}) });
  await world.lead({ judge: silent, attemptMilliseconds: 60_000 });
  await world.tell('firewall_rule.active');
  await waitUntil(() => target.received.length === 1, 'it is under way');
  const begin = Date.now();
  await world.rest();
  assert.ok(Date.now() - begin < 1_000, `${Date.now() - begin} ms`);
  for (const webhook of [hanging, nameless]) assert.deepEqual((await world.deliveries(webhook))[0]?.attempts, []);
  target.answer((response) => response.writeHead(204).end());
  await world.lead();
  await world.ended(hanging, 'delivered');
});

test('answers of 101 cost the target its attempts and no more', async () => {
  const target = await world.receiver();
  target.answer(({ socket }) => socket?.write('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'));
  const uuid = await world.webhook(target.url);
  await world.lead({ retryAfter: () => undefined, attemptMilliseconds: 60_000 });
  await world.tell('firewall_rule.active', world.user, 4);
  await world.ended(uuid, 'given_up', 4);
  const [delivery] = await world.deliveries(uuid);
  assert.equal(delivery?.attempts[0]?.error, 'answered with status 101: no other protocol than HTTP is spoken');
});

test('what waits is cancelled when a server says that it is gone', async () => {
  const target = await world.receiver();
  target.answer((response) => response.writeHead(410).end());
  const uuid = await world.webhook(target.url);
  await world.lead();
  await world.tell('firewall_rule.active', world.user, 20);
  await waitUntil(async () => {
    const states = await world.statesOf(uuid);
    return states.length === 20 && !states.includes('pending');
  }, 'nothing waits');
  const [row] = await world.query<{ disabled: boolean; disabled_reason: string }>('select * from webhook');
  assert.deepEqual([row?.disabled, row?.disabled_reason], [true, 'Its server answered that it is gone (410).']);
  const audited = await world.query(`select from audit where operation = 'disable' and object_uuid = $1`, [uuid]);
  assert.equal(audited.length, 1);
  assert.ok(target.received.length <= 4);
});

test('after five days without a delivery the webhook is disabled', async () => {
  const target = await world.receiver();
  target.answer((response) => response.writeHead(500).end());
  const uuid = await world.webhook(target.url);
  await world.query(
    `update webhook set failing_since = now() - interval '6 days', failure = 'answered with status 500'`,
  );
  await world.lead();
  await world.tell('firewall_rule.active');
  await world.ended(uuid, 'cancelled');
  const [row] = await world.query<{ disabled_reason: string }>('select * from webhook');
  assert.equal(row?.disabled_reason, 'Nothing was delivered for 5 days; the last attempt: answered with status 500.');
});

test('for a day after a rotation both secrets sign, and then the new one alone', async () => {
  const target = await world.receiver();
  const uuid = await world.webhook(target.url);
  await world.query(
    `update webhook set secret = $1, former_secret = $2, former_secret_until = now() + interval '1 day'`,
    [secretOf(2), secretOf(1)],
  );
  await world.lead();
  await world.tell('firewall_rule.active');
  await world.ended(uuid, 'delivered');
  assert.ok(verified(target.received[0], 1) && verified(target.received[0], 2));
  await world.query(`update webhook set former_secret_until = now() - interval '1 second'`);
  await world.tell('firewall_rule.active');
  await world.ended(uuid, 'delivered', 2);
  assert.ok(verified(target.received[1], 2));
  assert.throws(() => verified(target.received[1], 1), /No matching signature/);
});

test('a private target is refused at each attempt, whatever it was when the webhook was made', async () => {
  const target = await world.receiver();
  const uuid = await world.webhook(target.url);
  await world.lead({ judge: createTargetJudge(), retryAfter: ({ attempts }) => (attempts < 2 ? 0.01 : undefined) });
  await world.tell('firewall_rule.active');
  await world.ended(uuid, 'given_up');
  const [delivery] = await world.deliveries(uuid);
  assert.match(delivery?.attempts[0]?.error ?? '', /127\.0\.0\.1 is a loopback address/);
  assert.equal(target.received.length, 0);
});

test('old deliveries are forgotten, and with them the events that they kept', async () => {
  const target = await world.receiver();
  const uuid = await world.webhook(target.url);
  await world.lead({ forgetting: { everyMilliseconds: 20 } });
  await world.tell('firewall_rule.active', world.user, 2);
  await world.ended(uuid, 'delivered', 2);
  await world.query(`update event_log set floor = (select max(sequence) from event)`);
  await world.query(`update webhook_delivery set ended_at = now() - interval '25 hours'
    where sequence = (select min(sequence) from webhook_delivery)`);
  await waitUntil(async () => (await world.deliveries(uuid)).length === 1, 'the old one is gone');
  await pruneReleased(world.database.pool, 0);
  assert.equal((await world.query('select from event')).length, 1, 'and its event');
});
