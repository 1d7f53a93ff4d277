import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid } from '../../store/new-uuid.ts';
import { makeDeliveries } from './fan-out.ts';
import { forget } from './forget.ts';
import { useWebhookWorld } from './testing/webhook-world.ts';

const world = useWebhookWorld();
const signal = new AbortController().signal;

const count = async (table: string) => (await world.query<{ n: number }>(`select count(*) as n from ${table}`))[0]?.n;

/** As many as no statement removes at once. */
async function fill(webhook: string, deliveries = 12_000): Promise<void> {
  await world.query(
    `insert into webhook_delivery (uuid, webhook_uuid, name, test_data)
      select gen_random_uuid(), $1, 'webhook.test', '{}' from generate_series(1, $2::int)`,
    [webhook, deliveries],
  );
}

test('a webhook that was deleted goes with all of its deliveries, and others stay', async () => {
  const [gone, kept] = [await world.webhook('https://a.example.net/'), await world.webhook('https://b.example.net/')];
  await fill(gone);
  await fill(kept, 3);
  await world.query('update webhook set deletion_marked_at = now() where uuid = $1', [gone]);
  await forget(world.database.pool, signal);
  assert.deepEqual([await count('webhook'), await count('webhook_delivery')], [1, 3]);
});

test('what waits for a webhook that is disabled is cancelled, however much it is', async () => {
  const uuid = await world.webhook('https://a.example.net/');
  await fill(uuid);
  await world.query('update webhook set disabled = true');
  await forget(world.database.pool, signal);
  assert.deepEqual(new Set(await world.statesOf(uuid)), new Set(['cancelled']));
});

test('one for which too much waits is disabled and told why, and the others go on', async () => {
  const [slow, well] = [await world.webhook('https://a.example.net/'), await world.webhook('https://b.example.net/')];
  await world.tell('firewall_rule.active', world.user, 20);
  await makeDeliveries(world.database.pool);
  await fill(slow, 11);
  await forget(world.database.pool, signal, { mostWaiting: 30 });
  const rows = await world.query<{ uuid: string; disabled_reason: string | null }>('select * from webhook');
  const reasons = new Map(rows.map(({ uuid, disabled_reason }) => [uuid, disabled_reason]));
  assert.equal(reasons.get(slow), 'More than 30 deliveries waited for it.');
  assert.equal(reasons.get(well), null);
});

test('one whose limited key has ended is disabled, and told whether it expired or was revoked', async () => {
  const webhookOf = async (column: string) => {
    const uuid = newUuid();
    await world.query(
      `insert into api_key (uuid, account_uuid, hash, name, ${column}) values ($1, $2, $3, 'k', now())`,
      [uuid, world.user, Buffer.from(uuid.replaceAll('-', '').repeat(2), 'hex')],
    );
    return world.webhook('https://a.example.net/', { key: uuid });
  };
  const [expired, revoked] = [await webhookOf('expires_at'), await webhookOf('revoked_at')];
  await forget(world.database.pool, signal);
  const rows = await world.query<{ uuid: string; disabled_reason: string }>('select * from webhook');
  const reasons = new Map(rows.map(({ uuid, disabled_reason }) => [uuid, disabled_reason]));
  assert.equal(reasons.get(expired), 'The API key that it was set with has expired.');
  assert.equal(reasons.get(revoked), 'The API key that it was set with was revoked.');
  assert.equal((await world.query(`select from audit where operation = 'disable'`)).length, 2);
});
