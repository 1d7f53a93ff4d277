import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let user: Holder;

before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
});
after(() => api.stop());

const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };

test('a database that is killed gives 503 with Retry-After, half-done work is none, and all recovers by itself', async () => {
  const kept = await api.call('createFirewallRule', {}, { key: user.key, body: rule });
  process.kill(api.postgres.server.pid, 'SIGKILL');
  const stored = new Set<string>([kept.body.uuid]);
  let refused = 0;
  const deadline = Date.now() + 30_000;
  for (let answered = 0; answered < 5; ) {
    assert.ok(Date.now() < deadline, 'no recovery');
    const replies: Reply[] = await Promise.all([
      api.call('createFirewallRule', {}, { key: user.key, body: rule }),
      api.call('readFirewallRule', { uuid: kept.body.uuid }, { key: user.key }),
      api.call('listFirewallRules', {}, { key: user.key }),
    ]);
    for (const reply of replies) {
      assert.ok(reply.status === 200 || reply.status === 503, reply.text);
      if (reply.status === 200) continue;
      refused++;
      assert.deepEqual([reply.body.error, reply.headers.get('retry-after')], ['unavailable', '1']);
    }
    const [created] = replies;
    if (created?.status === 200) stored.add(created.body.uuid);
    if (replies.every((reply) => reply.status === 200)) answered++;
    else await delay(20);
  }
  assert.ok(refused > 0, 'the loss was seen');
  const { body } = await api.call('listFirewallRules', {}, { key: user.key });
  const listed = new Set(body.map((each: { uuid: string }) => each.uuid));
  // Not durable here on purpose, but a killed postmaster loses nothing that it had acknowledged to its own files.
  for (const uuid of stored) assert.ok(listed.has(uuid), uuid);
});
