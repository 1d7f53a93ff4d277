/** What a sender without a key, or with too much to say, may cost: nothing that was not bounded beforehand. */
import assert from 'node:assert/strict';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { report } from './testing/agent-client.ts';
import { enrolled, type Replica, startReplica } from './testing/replica.ts';

let postgres: TestPostgres;
let replica: Replica;
let key: string;
before(async () => {
  postgres = await startTestPostgres();
  const database = await postgres.createDatabase();
  replica = await startReplica(database);
  ({ key } = await enrolled(database, 'edge1'));
});
after(async () => {
  await replica?.stop();
  await postgres?.stop();
});

interface Sending {
  readonly request: ClientRequest;
  readonly answer: Promise<number>;
}

/** Announces that many bytes, sends one, and leaves the rest out. */
function announce(path: string, bytes: number, router?: string): Sending {
  const request = httpRequest(replica.base + path, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      'content-length': bytes,
      ...(router !== undefined && { authorization: `Bearer ${router}` }),
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  request.on('response', (response: IncomingMessage) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  });
  request.on('error', reject);
  request.setTimeout(5_000, () => request.destroy(new Error('no answer before the body was complete')));
  request.write('{');
  return { request, answer: promise.finally(() => request.destroy()) };
}

test('a report without a good router key is refused before its body is read', async () => {
  assert.equal(await announce('/agent/v1/report', 1_000_000).answer, 401);
  assert.equal(await announce('/agent/v1/report', 1_000_000, 'lv_r_unknown').answer, 401);
});

test('a report of more than 16 MiB, and an enrolment of more than 4 KiB, are refused unread', async () => {
  assert.equal(await announce('/agent/v1/report', 16 * 1024 * 1024 + 1, key).answer, 413);
  assert.equal(await announce('/agent/v1/enroll', 4 * 1024 + 1).answer, 413);
});

test('the refusals of a hundred thousand rules fit into one report', async () => {
  const failures = Array.from({ length: 100_000 }, (_, index) => ({
    uuid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    reason: 'x'.repeat(60),
  }));
  assert.equal((await report(replica.base, key, { failures })).status, 200);
  assert.equal((await report(replica.base, key, {})).status, 200);
});

test('a router may have two reports under way, not more, and gets its turn back when one of them breaks off', async () => {
  const three = [1, 2, 3].map(() => announce('/agent/v1/report', 100, key));
  const refused = await Promise.race(three.map(({ answer }, index) => answer.then((status) => ({ status, index }))));
  assert.equal(refused.status, 429);
  const [first, second] = three.filter((_, index) => index !== refused.index);
  for (const held of [first, second]) held?.answer.catch(() => {});
  assert.equal((await report(replica.base, key, {})).status, 429);
  first?.request.destroy();
  await waitUntil(async () => (await report(replica.base, key, {})).status === 200, 'the turn');
  second?.request.destroy();
});
