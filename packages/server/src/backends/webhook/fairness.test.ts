import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../store/testing/wait-until.ts';
import type { ResolveHost } from './resolve-host.ts';
import { OF_AN_ACCOUNT } from './shares.ts';
import { createTargetJudge } from './target.ts';
import { OF_A_TARGET_AND_ACCOUNT } from './targets.ts';
import { useWebhookWorld } from './testing/webhook-world.ts';

const world = useWebhookWorld();

/** Milliseconds until it is delivered. */
async function deliver(webhook: string, owner: string): Promise<number> {
  const before = (await world.statesOf(webhook)).length;
  const begin = Date.now();
  await world.tell('firewall_rule.active', owner);
  await world.ended(webhook, 'delivered', before + 1);
  return Date.now() - begin;
}

test("one account's webhooks that hang hold up nobody else's, on other servers or on the same one", async () => {
  const [hanging, elsewhere, well] = [
    await world.receiver(),
    await world.receiver(0, '127.0.0.2'),
    await world.receiver(0, '127.0.0.3'),
  ];
  // The same server for both accounts: it hangs for whom it does.
  for (const each of [hanging, elsewhere]) {
    each.answer((response) => {
      if (!response.req.url?.startsWith('/hang')) response.writeHead(204).end();
    });
  }
  const others = await world.account('other');
  for (let each = 0; each < 20; each++) {
    await world.webhook((each % 2 === 0 ? hanging : elsewhere).url.replace('/hook', `/hang/${each}`));
  }
  const [own, shared] = [
    await world.webhook(well.url, { owner: others }),
    await world.webhook(hanging.url, { owner: others }),
  ];
  await world.lead({ attemptMilliseconds: 60_000 });
  await world.tell('firewall_rule.active', world.user, 50);
  await waitUntil(() => hanging.received.length + elsewhere.received.length === OF_AN_ACCOUNT, 'its share is used up');
  for (const webhook of [own, shared]) {
    for (let each = 0; each < 3; each++) {
      const milliseconds = await deliver(webhook, others);
      assert.ok(milliseconds < 1_000, `${milliseconds} ms`);
    }
  }
  const hung = [...hanging.received, ...elsewhere.received].filter(({ path }) => path.startsWith('/hang'));
  assert.equal(hung.length, OF_AN_ACCOUNT);
});

test('many names of one server share what one server may get at once', async () => {
  const target = await world.receiver();
  target.answer(() => {});
  const resolve: ResolveHost = async () => ({ ok: true, addresses: ['127.0.0.1'] });
  for (let each = 0; each < 20; each++) {
    await world.webhook(target.url.replace('127.0.0.1', `n${each}.example.net`));
  }
  const judge = createTargetJudge({ allow: ['127.0.0.0/8'], resolve });
  await world.lead({ judge, attemptMilliseconds: 600, retryAfter: () => 3_600 });
  await world.tell('firewall_rule.active', world.user, 1);
  // Those that found it busy were not tried, and are when it is free.
  const all = async () =>
    (await world.query('select from webhook_delivery where attempts <> $1', ['[]'])).length === 20;
  await waitUntil(all, 'each was tried once');
  assert.equal(target.received.length, 20);
  assert.equal(target.mostAtOnce, OF_A_TARGET_AND_ACCOUNT);
});

test('a webhook that fails is tried once more when its owner asks for it, and not for what happens', async () => {
  const [target, other] = [await world.receiver(), await world.receiver()];
  target.answer((response) => response.writeHead(502).end());
  const [failing, well] = [await world.webhook(target.url), await world.webhook(other.url)];
  await world.lead({ retryAfter: () => 0.01 });
  await world.tell('firewall_rule.active', world.user, 10);
  const attempts = async () =>
    (await world.deliveries(failing)).reduce((sum, delivery) => sum + delivery.attempts.length, 0);
  // All that were begun have failed, and there were enough of them: it is let alone for seconds.
  const settled = async () => target.received.length >= 5 && (await attempts()) === target.received.length;
  await waitUntil(settled, 'it is let alone');
  await world.tell('firewall_rule.active');
  await world.ended(well, 'delivered', 11);
  const before = target.received.length;
  await world.tell('firewall_rule.active');
  await world.ended(well, 'delivered', 12);
  assert.equal(target.received.length, before);
  world.wake(failing, 'due');
  await waitUntil(async () => (await attempts()) === before + 1, 'one more attempt');
  await world.tell('firewall_rule.active');
  await world.ended(well, 'delivered', 13);
  assert.equal(target.received.length, before + 1);
});
