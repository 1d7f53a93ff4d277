/** Guarantees to those who are told of attacks, through a whole control plane: a detector's report, webhooks, previews. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { SamplesWanted } from '@levee/contract/detector.ts';
import { detectedAttack, sampleOf } from './commands/testing/detected.ts';
import { type DetectorStream, openDetectorStream, reportOf, sendReport } from './detectors/testing/detector-client.ts';
import { request, silent } from './http/testing/api-fixture.ts';
import { type ServerHandle, startServer } from './main.ts';
import { waitUntil } from './store/testing/wait-until.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-detected-${process.pid}-`));
const dst = '203.0.113.7';
let server: ServerHandle;
let stream: DetectorStream;
let receiver: Server;
let operator: string;
let provider: string;
let detector: string;
// biome-ignore lint/suspicious/noExplicitAny: the data of an event.
const heard: { readonly atMilliseconds: number; readonly body: any }[] = [];

async function call(method: string, path: string, key: string, body?: object) {
  const reply = await request(server.address, method, `/v1${path}`, { key, ...(body !== undefined && { body }) });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

before(async () => {
  const started = await startServer({
    listen: { host: '127.0.0.1', port: 0 },
    dataDirectory: folder,
    webhookAllow: ['127.0.0.0/8'],
    log: silent,
  });
  assert.ok(started.ok, started.ok ? '' : started.message);
  server = started.server;
  operator = server.newOperatorKey ?? '';
  const { uuid } = await call('POST', '/operator/provider', operator, { name: 'one', prefixes: ['203.0.113.0/24'] });
  provider = (await call('POST', '/api-key', operator, { account_uuid: uuid, name: 'test' })).key;
  detector = (await call('POST', '/operator/detector', operator, { name: 'detect1' })).key;
  stream = await openDetectorStream(server.address, detector);
  await waitUntil(() => stream.settings !== undefined, 'the settings');
  receiver = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      heard.push({ atMilliseconds: performance.now(), body: JSON.parse(Buffer.concat(parts).toString()) });
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  await call('POST', '/webhook', provider, { url, events: ['attack.*'] });
});
after(async () => {
  stream?.close();
  receiver?.close();
  receiver?.closeAllConnections();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("a webhook hears of an attack's start as soon as its detector has told it, and of its end", async (context) => {
  const waits: number[] = [];
  for (let round = 0; round < 7; round++) {
    const now = Date.now();
    const attack = detectedAttack(`203.0.113.${20 + round}`, now - 300, {
      detected_ms: now,
      measured: { at_ms: now, pps: 48_000, bps: 537_600_000 },
    });
    const handed = performance.now();
    const { status, body } = await sendReport(server.address, detector, reportOf([attack]));
    assert.deepEqual([status, body], [200, { refused: [] }]);
    const news = () => heard.filter(({ body }) => body.data.dst === attack.dst);
    await waitUntil(() => news().length > 0, 'the webhook');
    const [start] = news();
    assert.equal(start?.body.type, 'attack.started');
    assert.equal(start?.body.data.timings.detect_ms, 300);
    assert.ok(start?.body.data.timings.decide_ms >= 0);
    waits.push((start?.atMilliseconds ?? 0) - handed);
    const end = { ...attack, phase: 'ended', ended_ms: Date.now() } as const;
    await sendReport(server.address, detector, reportOf([end], { sequence: 1 }));
    await waitUntil(() => news().some(({ body }) => body.type === 'attack.ended'), 'the end');
    assert.equal(news().findLast(({ body }) => body.type === 'attack.ended')?.body.data.timings.detect_ms, 300);
  }
  const sorted = waits.toSorted((a, b) => a - b);
  const [median = 0, worst = 0] = [sorted[3], sorted[6]];
  context.diagnostic(`report → webhook: median ${median.toFixed(0)} ms, worst ${worst.toFixed(0)} ms of 7`);
  assert.ok(median < 1_000, `${waits}`);
});

test('a preview asks the detector on its stream, and takes what it sends back', async () => {
  const body = { dst, protocol: 'udp', action: 'drop', port: { src: { start: 53 } } };
  const answer = call('POST', '/firewall/preview', provider, body);
  const wanted = () => stream.messages.find((each): each is SamplesWanted => each.type === 'samples_wanted');
  await waitUntil(() => wanted() !== undefined, 'the question');
  const question = wanted() as SamplesWanted;
  assert.deepEqual([question.dst, question.most], [dst, 1000]);
  assert.ok(question.seconds > 0 && question.seconds <= 900, 'no further back than the prefix is held');
  const sent = await fetch(`${server.address}/detector/v1/samples`, {
    method: 'POST',
    headers: { authorization: `Bearer ${detector}`, 'content-type': 'application/json' },
    body: JSON.stringify({ request: question.request, held: 2, packets: [sampleOf(dst, Date.now())] }),
  });
  assert.equal(sent.status, 200);
  const { samples, matched, matched_packets, held } = await answer;
  assert.deepEqual([samples, matched, matched_packets, held], [1, 1, 16, 2]);
});

test("the operator's word reaches measures that stand within a second, and an event tells of a flowrule as it went", async (context) => {
  const now = Date.now();
  const place = '203.0.113.90';
  const { uuid } = await call('POST', '/operator/detection-policy', operator, {
    scope: place,
    mitigation: 'edge',
    mitigation_hold_s: 0,
  });
  const attack = detectedAttack(place, now - 300, { measured: { at_ms: now, pps: 48_000, bps: 537_600_000 } });
  await sendReport(server.address, detector, reportOf([attack]));
  // biome-ignore lint/suspicious/noExplicitAny: an answer.
  const standing = async (kind: string): Promise<any[]> =>
    (await call('GET', `/${kind}?dst=${place}`, provider)).filter(
      ({ state }: { state: string }) => state !== 'marked_for_deletion',
    );
  assert.equal((await standing('firewall/rule')).length, 1);
  const braked = performance.now();
  await call('PATCH', `/operator/detection-policy/${uuid}`, operator, { mitigation: 'observe' });
  await waitUntil(async () => (await standing('firewall/rule')).length === 0, 'the rule to go');
  const took = performance.now() - braked;
  context.diagnostic(`policy → rule marked: ${took.toFixed(0)} ms`);
  assert.ok(took < 2_000, `${took} ms`);

  const [flowrule] = await standing('flowrule');
  const endedMs = Date.now();
  await sendReport(
    server.address,
    detector,
    reportOf([{ ...attack, phase: 'ended', ended_ms: endedMs }], { sequence: 1 }),
  );
  const { pool } = server.database;
  const gone = async () =>
    (
      await pool.query(
        `select data->>'expires_at' as expires_at from event where name = 'flowrule.deleted' and object_uuid = $1`,
        [flowrule.uuid],
      )
    ).rows;
  await waitUntil(async () => (await gone()).length === 1, 'the flowrule to be told as gone');
  assert.deepEqual(await gone(), [{ expires_at: new Date(endedMs).toISOString() }]);
});
