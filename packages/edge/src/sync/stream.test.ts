import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { pino } from 'pino';
import type { AgentEntry } from '../state/objects.ts';
import { startControlPlane } from '../testing/control-plane.ts';
import { filterOf } from '../testing/filters.ts';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';
import { followStream, type StreamOptions } from './stream.ts';

const logger = pino({ level: 'silent' });

function follow(t: TestContext, addresses: string[], options: Partial<StreamOptions> = {}) {
  const seen = {
    entries: new Map<string, AgentEntry>(),
    tunnels: new Map<string, AgentTunnel>(),
    complete: [] as boolean[],
    cursor: undefined as string | undefined,
    snapshots: 0,
    changes: 0,
    hellos: [] as string[],
  };
  const stream = followStream({
    endpoints: parseEndpoints(addresses),
    key: 'lv_r_testtesttesttesttest_000000',
    silenceMilliseconds: 5_000,
    reconnectMilliseconds: 20,
    logger,
    keyAlarm: () => undefined,
    cursor: () => seen.cursor,
    hello: (_, endpoint) => seen.hellos.push(endpoint.text),
    snapshot(cursor, { entries, tunnels, complete }) {
      seen.snapshots += 1;
      seen.cursor = cursor;
      seen.complete.push(complete);
      seen.entries = new Map(entries.map((entry) => [entry.uuid, entry]));
      seen.tunnels = new Map(tunnels.map((tunnel) => [tunnel.uuid, tunnel]));
    },
    changes(cursor, { entries, tunnels, complete }, remove) {
      seen.changes += 1;
      seen.cursor = cursor;
      seen.complete.push(complete);
      for (const map of [seen.entries, seen.tunnels]) for (const uuid of remove) map.delete(uuid);
      for (const entry of entries) seen.entries.set(entry.uuid, entry);
      for (const tunnel of tunnels) seen.tunnels.set(tunnel.uuid, tunnel);
    },
    ...options,
  });
  t.after(() => stream.stop());
  return { seen, stream };
}

async function controlPlaneFor(t: TestContext) {
  const controlPlane = await startControlPlane();
  t.after(() => controlPlane.close());
  return controlPlane;
}

/** Answers the stream with these lines, and keeps it open. */
async function saying(t: TestContext, lines: string[]): Promise<{ address: string; count: () => number }> {
  let asked = 0;
  const server: Server = createServer((_, response) => {
    asked += 1;
    response.writeHead(200);
    for (const line of lines) response.write(`${line}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, count: () => asked };
}

const hello = JSON.stringify({ type: 'hello', router: { uuid: 'u', name: 'n', location: 'l' }, heartbeat_s: 5 });

test('a snapshot of several lines arrives whole, changes after it one by one', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  controlPlane.upsert(...Array.from({ length: 2500 }, (_, n) => ruleOf(n)));
  controlPlane.forget();
  const { seen } = follow(t, [controlPlane.address]);
  await until('the snapshot is there', () => seen.snapshots === 1);
  assert.equal(seen.entries.size, 2500);
  controlPlane.upsert(ruleOf(1, { action: 'accept' }));
  controlPlane.remove(uuidOf(2));
  await until('the changes are there', () => seen.changes === 2);
  assert.deepEqual(seen.entries, controlPlane.entries);
});

test('filters and tunnels come with the rules, in snapshots and in changes', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  controlPlane.upsert(...Array.from({ length: 1500 }, (_, n) => filterOf(n)), tunnelOf(2000), ruleOf(2001));
  controlPlane.forget();
  const { seen } = follow(t, [controlPlane.address]);
  await until('the snapshot is there', () => seen.snapshots === 1);
  controlPlane.upsert(filterOf(1, { ratelimit: 7 }), tunnelOf(2002));
  controlPlane.remove(uuidOf(2), uuidOf(2000));
  await until('the changes are there', () => seen.changes === 2);
  assert.deepEqual(seen.entries, controlPlane.entries);
  assert.deepEqual([...seen.tunnels.keys()], [uuidOf(2002)]);
  assert.deepEqual(seen.complete, [true, true, true]);
});

test('the snapshot and the changes of an older control plane are known to be of rules alone', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  controlPlane.tellAll(false);
  controlPlane.upsert(ruleOf(1), filterOf(2));
  // As an edge does that has seen no more than rules: it has no cursor to go on from.
  const { seen } = follow(t, [controlPlane.address], { cursor: () => undefined });
  await until('the snapshot is there', () => seen.snapshots === 1);
  controlPlane.upsert(ruleOf(3));
  await until('the change is there', () => seen.changes === 1);
  assert.deepEqual([...seen.entries.keys()], [uuidOf(1), uuidOf(3)]);
  assert.deepEqual(seen.complete, [false, false]);
  assert.equal(seen.hellos.length, 1);
});

test('after a partition the stream resumes at the cursor, without a snapshot', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  controlPlane.upsert(ruleOf(1));
  const { seen } = follow(t, [controlPlane.address]);
  await until('connected', () => seen.cursor === '1.1');
  await controlPlane.cut();
  controlPlane.upsert(ruleOf(2));
  controlPlane.remove(uuidOf(1));
  await controlPlane.restore();
  await until('caught up', () => seen.cursor === '1.3');
  assert.deepEqual(seen.entries, controlPlane.entries);
  assert.equal(seen.snapshots, 1);
});

test('a cursor that has expired is answered by a snapshot, which replaces everything', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  controlPlane.upsert(ruleOf(1));
  const { seen } = follow(t, [controlPlane.address]);
  await until('connected', () => seen.cursor === '1.1');
  await controlPlane.cut();
  controlPlane.upsert(ruleOf(2));
  controlPlane.remove(uuidOf(1));
  controlPlane.forget();
  await controlPlane.restore();
  await until('caught up', () => seen.snapshots === 2);
  assert.deepEqual([...seen.entries.keys()], [uuidOf(2)]);
});

test('a control plane that falls silent is left for the next one', async (t) => {
  const silent = await controlPlaneFor(t);
  const other = await controlPlaneFor(t);
  const { seen, stream } = follow(t, [silent.address, other.address], { silenceMilliseconds: 100 });
  silent.freeze();
  await until('the other one was asked', () => seen.hellos.includes(other.address));
  assert.equal(seen.hellos[0], silent.address);
  await stream.stop();
});

test('heartbeats alone keep a stream', async (t) => {
  const controlPlane = await startControlPlane({ heartbeatMs: 20 });
  t.after(() => controlPlane.close());
  let now = 0;
  const { seen, stream } = follow(t, [controlPlane.address], { silenceMilliseconds: 200 });
  await until('connected', () => stream.connected);
  const began = performance.now();
  await until('much longer than the silence that it stands', () => {
    now = performance.now() - began;
    return now > 700;
  });
  assert.equal(seen.hellos.length, 1);
});

test('an address that refuses is passed over', async (t) => {
  const gone = await controlPlaneFor(t);
  const other = await controlPlaneFor(t);
  await gone.cut();
  const { stream, seen } = follow(t, [gone.address, other.address]);
  await until('connected', () => stream.connected);
  assert.deepEqual(seen.hellos, [other.address]);
});

test('a snapshot that broke off is not taken for a state', async (t) => {
  const rules = JSON.stringify({ type: 'rules', rules: [ruleOf(1)] });
  const { address, count } = await saying(t, [hello, '{"type":"snapshot_begin"}', rules, '{"type":"snapshot_begi']);
  const { seen } = follow(t, [address], { silenceMilliseconds: 50 });
  await until('it was tried twice', () => count() > 1);
  assert.equal(seen.snapshots, 0);
  assert.equal(seen.cursor, undefined);
});

for (const [what, lines] of [
  ['no hello', ['{"type":"heartbeat"}']],
  ['no JSON', [hello, 'nonsense']],
  ['rules outside of a snapshot', [hello, '{"type":"rules","rules":[]}']],
  ['filters outside of a snapshot', [hello, '{"type":"filters","filters":[]}']],
  ['tunnels outside of a snapshot', [hello, '{"type":"tunnels","tunnels":[]}']],
  ['changes before a snapshot', [hello, '{"type":"changes","cursor":"1.1","upsert":[],"remove":[]}']],
  [
    'changes inside of a snapshot',
    [hello, '{"type":"snapshot_begin"}', '{"type":"changes","cursor":"1.1","upsert":[],"remove":[]}'],
  ],
] as const) {
  test(`a stream with ${what} is given up and asked for again`, async (t) => {
    const { address, count } = await saying(t, [...lines]);
    const { seen } = follow(t, [address]);
    await until('it was asked again', () => count() > 1);
    assert.equal(seen.snapshots + seen.changes, 0);
  });
}

test('stopping ends a connection that is up, and a wait for one', async (t) => {
  const controlPlane = await controlPlaneFor(t);
  const { stream } = follow(t, [controlPlane.address]);
  await until('connected', () => stream.connected);
  await stream.stop();
  await until('the control plane sees it go', () => controlPlane.streams === 0);
  await controlPlane.cut();
  const waiting = follow(t, [controlPlane.address], { reconnectMilliseconds: 60_000 });
  await waiting.stream.stop();
});
