import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startReceiver } from '../backends/webhook/testing/receiver.ts';
import type { LeadersTask } from '../events/events.ts';
import { openSse, type SseClient } from '../events/testing/sse-client.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let user: Holder;

before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
});
after(() => api.stop());

async function follow({ url }: ControlPlane): Promise<SseClient> {
  const client = await openSse(url, user.key);
  await waitUntil(() => client.heartbeats > 0, 'the stream stands at the present');
  return client;
}

/** Makes a rule, and waits until it is told of. */
async function toldOf(plane: ControlPlane, client: SseClient): Promise<void> {
  const body = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  const made = await request(plane.url, 'POST', '/v1/firewall/rule', { key: user.key, body });
  assert.equal(made.status, 200, made.text);
  await waitUntil(() => client.messages.some(({ data }) => data.data?.uuid === made.body.uuid), 'the rule is told of');
}

test('a task that fails or hangs holds up neither events nor the end of a lead', async () => {
  const log: string[] = [];
  let begun = 0;
  const tasks: LeadersTask[] = [
    {
      name: 'a task',
      async run() {
        begun++;
        throw new Error('it cannot');
      },
    },
    { name: 'another', run: () => new Promise(() => {}) },
  ];
  const plane = await startControlPlane(api.database, { tasks, log: (message) => log.push(message) });
  try {
    await waitUntil(() => plane.events.leads, 'the replica leads');
    const client = await follow(plane);
    await toldOf(plane, client);
    await waitUntil(() => begun >= 3, 'the task that fails is begun again');
    assert.deepEqual(
      log.filter((message) => message.startsWith('a task')),
      ['a task fails: it cannot'],
      'told once',
    );
    await api.database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'levee events' and datname = current_database()`,
    );
    // Not before the former lead has ended.
    await waitUntil(() => log.includes('a lead ended with work under way'), 'the lead ends');
    await toldOf(plane, client);
    assert.ok(plane.events.leads);
  } finally {
    const begin = Date.now();
    await plane.events.stop();
    assert.ok(Date.now() - begin < 6_000, `${Date.now() - begin} ms`);
    await plane.stop();
  }
});

test('webhooks that the database keeps waiting hold up no event, and get theirs afterwards', async () => {
  const plane = await startControlPlane(api.database);
  const target = await startReceiver();
  const blocking = await api.database.connect('test lock');
  try {
    await waitUntil(() => plane.events.leads, 'the replica leads');
    const client = await follow(plane);
    const body = { url: target.url, events: ['*'] };
    assert.equal((await request(plane.url, 'POST', '/v1/webhook', { key: user.key, body })).status, 200);
    // Not so that reading must wait: that would hold the horizon back, and all that follows the change log.
    await blocking.query('begin; lock table webhook_delivery in exclusive mode');
    await toldOf(plane, client);
    await toldOf(plane, client);
    assert.equal(target.received.length, 0);
    await blocking.query('commit');
    await waitUntil(() => target.received.length === 2, 'both arrive');
  } finally {
    await blocking.end();
    await plane.stop();
    await target.close();
  }
});
