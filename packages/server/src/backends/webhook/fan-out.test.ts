import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid } from '../../store/new-uuid.ts';
import { makeDeliveries } from './fan-out.ts';
import { useWebhookWorld } from './testing/webhook-world.ts';

const world = useWebhookWorld();

const place = async () => (await world.query<{ sequence: number }>('select sequence from webhook_place'))[0]?.sequence;

async function makeAll(): Promise<number> {
  for (let statements = 1; ; statements++) {
    const { more } = await makeDeliveries(world.database.pool);
    if (!more) return statements;
  }
}

test('events are gone through some at a time, each once, also by two at the same time', async () => {
  const webhooks = await Promise.all(Array.from({ length: 20 }, () => world.webhook('https://hooks.example.net/')));
  const first = await world.tell('firewall_rule.active', world.user, 1_000);
  const statements = await Promise.all([makeAll(), makeAll()]);
  assert.ok(statements[0] + statements[1] >= 12, String(statements));
  assert.equal(await place(), first + 999);
  for (const webhook of webhooks) assert.equal((await world.deliveries(webhook)).length, 1_000);
  assert.deepEqual(await makeDeliveries(world.database.pool), { webhooks: [], more: false });
});

test('a webhook gets what happens after it was made or enabled, however late deliveries are made', async () => {
  await world.tell('firewall_rule.active');
  const uuid = await world.webhook('https://hooks.example.net/');
  await world.tell('firewall_rule.failed');
  assert.deepEqual((await makeDeliveries(world.database.pool)).webhooks, [
    { webhook: uuid, account: world.user, url: 'https://hooks.example.net/' },
  ]);
  const made = await world.query<{ name: string }>('select name from webhook_delivery');
  assert.deepEqual(made, [{ name: 'firewall_rule.failed' }]);
});

test('one whose limited key has ended gets nothing', async () => {
  const key = async (more: string) => {
    const uuid = newUuid();
    await world.query(
      `insert into api_key (uuid, account_uuid, hash, name, ${more.split(' ')[0]}) values ($1, $2, $3, 'k', ${more.slice(more.indexOf(' '))})`,
      [uuid, world.user, Buffer.from(uuid.replaceAll('-', '').repeat(2), 'hex')],
    );
    return uuid;
  };
  const ended = [await key(`expires_at now() - interval '1 second'`), await key('revoked_at now()')];
  for (const each of ended) await world.webhook('https://ended.example.net/', { key: each });
  const live = await world.webhook('https://hooks.example.net/', {
    key: await key(`expires_at now() + interval '1 hour'`),
  });
  await world.tell('firewall_rule.active');
  const { webhooks } = await makeDeliveries(world.database.pool);
  assert.deepEqual(
    webhooks.map(({ webhook }) => webhook),
    [live],
  );
});
