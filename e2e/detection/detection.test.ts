/**
 * Guarantees to who is attacked, with real parts from end to end: labelled traffic on a wire, real exporters, `levee up`, gobgpd, BIRD
 * as the peer. Each attack is found once and for what it is, nothing else is; what is announced is what the lists say, hits the
 * attack and nothing that the customer let in; and all of it goes when the attack does.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { vectors } from '@levee/core/detection/vector.ts';
import { Exporter } from '@levee/lab/exporters/exporter.ts';
import type { Replay } from '@levee/lab/exporters/replay.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { openPacketSocket } from '@levee/lab/packet-socket.ts';
import { device } from '@levee/lab/router-path.ts';
import { placeOf } from '@levee/lab/traffic/place.ts';
import type { TrafficStream } from '@levee/lab/traffic/schedule.ts';
import { isAlive, until } from '../running-levee.ts';
import { applies, readFrame } from './flow-match.ts';
import {
  aggregateThresholds,
  byFlows,
  edgeGuarded,
  everyVector,
  prefixes,
  thresholds,
  throughCrashes,
  visited,
  withAccept,
} from './scene.ts';
import { type PreparedTraffic, Stage } from './stage.ts';
import { type SeenAttack, Watch } from './watch.ts';

const skip = labObstacle() ?? false;
const holdSeconds = 5;
const measureHoldSeconds = 10;

let stage: Stage;
let watch: Watch;
let traffic: PreparedTraffic;
const found = new Map<TrafficStream, SeenAttack>();

before(async () => {
  if (skip) return;
  stage = await Stage.start('detect');
  const { levee, provider } = stage;
  const operator = levee.operatorKey;
  await levee.good('POST', '/operator/exporter', operator, { name: 'uplink', source: '127.0.0.1' });
  const settings = { hold_s: holdSeconds, mitigation_hold_s: measureHoldSeconds };
  const policy = (scope: string, more: object) =>
    levee.good('POST', '/operator/detection-policy', operator, { scope, ...settings, ...more });
  await policy('installation', { thresholds, aggregate_thresholds: aggregateThresholds, mitigation: 'flowspec' });
  await policy(prefixes.edge, { mitigation: 'edge' });
  for (const dst of [visited, withAccept]) {
    const https = { dst, protocol: 'tcp', port: { dst: { start: 443 } }, action: 'accept' };
    await levee.good('POST', '/firewall/rule', provider.key, https);
  }
  watch = new Watch(levee, provider.key, stage.bird);
});
after(async () => {
  await watch?.stop().catch(() => undefined);
  await stage?.stop();
});

/** The attacks that were recorded since: each label's own, and no other. */
async function findAll(prepared: PreparedTraffic, sinceMs: number): Promise<void> {
  const recorded = (): SeenAttack[] => [...watch.attacks.values()].filter(({ listedMs }) => listedMs >= sinceMs);
  const of = (dst: string): SeenAttack[] => recorded().filter(({ last }) => last.dst === dst);
  const missing = (): string[] => prepared.attacks.filter(({ dst }) => of(dst).length === 0).map(({ dst }) => dst);
  await until('all attacks to be found', 8000, () => missing().length === 0).catch((error: Error) => {
    throw new Error(`${error.message}: ${missing().join(', ')}`);
  });
  for (const label of prepared.attacks) {
    const [attack, ...more] = of(label.dst);
    assert.ok(attack && more.length === 0, `${label.name} to ${label.dst} is recorded ${1 + more.length} times`);
    found.set(label, attack);
  }
  const labelled = prepared.attacks.map(({ dst }) => dst);
  assert.deepEqual(
    recorded().filter(({ last }) => !labelled.includes(last.dst)),
    [],
    'nothing else is an attack',
  );
}

function printTimes(prepared: PreparedTraffic, replay: Replay): void {
  const rows = prepared.attacks.map((label, number) => {
    const begun = replay.begun(number) ?? Number.NaN;
    const attack = found.get(label);
    const announced = watch.announcedMs.get(label.dst);
    const after = (at: number | undefined): number | string => (at === undefined ? '–' : Math.round(at - begun));
    return {
      vector: label.name,
      dst: label.dst,
      'recorded ms': after(attack && Date.parse(attack.last.created_at)),
      'listed ms': after(attack?.listedMs),
      'at BIRD ms': after(announced),
    };
  });
  console.table(rows);
}

/** Frames to the edge's destination that reached the customer. */
let floodPassed = 0;

test('each vector is found once and for what it is, and neither background nor a crowd is', { skip }, async () => {
  traffic = stage.prepare(everyVector);
  assert.deepEqual([...new Set(traffic.attacks.map(({ name }) => name))].sort(), [...vectors].sort());
  const exporter = await Exporter.sflow(stage.exporting());
  const customer = openPacketSocket(stage.path.customer, {
    device: device.customer,
    receiveBytes: 64,
    // The last half of the destination.
    only: [{ offset: 32, value: Number(placeOf(edgeGuarded).value & 0xffffn) }],
  });
  const sinceMs = Date.now();
  const replay = await stage.replay(traffic);
  try {
    await replay.finished;
    await findAll(traffic, sinceMs);
    printTimes(traffic, replay);
    for (const label of traffic.attacks) assert.deepEqual(found.get(label)?.last.vectors, [label.name], label.dst);
    floodPassed = customer.receive(() => undefined);
    assert.equal(customer.droppedFrames(), 0);
  } finally {
    await replay.stop();
    await exporter.stop();
    customer.close();
  }
});

test('the peer has exactly the flowrules that are active', { skip }, async () => {
  const { active, atPeer } = await watch.routes();
  assert.ok(active.length >= 4, `${active.length} flowrules are active`);
  assert.deepEqual(atPeer, active);
});

test('what is announced hits nine tenths of an attack, and nothing that the customer accepts', { skip }, () => {
  const announced = traffic.attacks.filter(({ dst }) => dst !== edgeGuarded && dst !== withAccept);
  const hit = new Map<TrafficStream, number>();
  for (const { frame, stream } of traffic.schedule.inOrder()) {
    const label = announced.find(({ dst }) => dst === stream?.dst);
    const packet = label && readFrame(frame);
    if (stream === undefined || packet === undefined) continue;
    const rules = watch.measures.get(found.get(label as TrafficStream)?.uuid ?? '') ?? [];
    if (!rules.some((rule) => applies(rule, packet))) continue;
    hit.set(stream, (hit.get(stream) ?? 0) + 1);
    const isHttps = packet.protocol === 6 && packet.ports?.[1] === 443;
    assert.ok(stream.attack || !isHttps, `a visit to ${visited} is hit`);
  }
  for (const label of announced) {
    const part = (hit.get(label) ?? 0) / label.packets;
    assert.ok(part >= 0.9, `${label.name} to ${label.dst}: ${(part * 100).toFixed(1)} % is hit`);
  }
});

test('each flood is met by the match that its packets ask for, not by all of its kind', { skip }, () => {
  // Nine tenths of the packets' 468 and 1180 octets; of 464 and 1168 where a short answer of the background was sampled too: profiles
  // tell all but the shortest in steps of 16 octets.
  const asked = new Map<string, Record<string, readonly [least: number, most: number]>>([
    ['udp-amplification 4', { 'source-port': [123, 123], 'packet-length': [417, 65_535] }],
    ['udp-amplification 6', { 'source-port': [53, 53], 'packet-length': [1051, 65_535] }],
    ['udp-other 4', { 'destination-port': [27_015, 27_015], 'packet-length': [200, 200] }],
    ['icmp 4', { 'icmp-type': [8, 8] }],
    ['ip-other 4', { protocol: [253, 253] }],
    ['gre 4', { protocol: [47, 47] }],
  ]);
  const met = new Set<string>();
  for (const label of traffic.attacks) {
    const name = `${label.name} ${label.dst.includes(':') ? 6 : 4}`;
    const [rule] = watch.measures.get(found.get(label)?.uuid ?? '') ?? [];
    for (const [component, [least, most]] of Object.entries((rule && asked.get(name)) ?? {})) {
      const sets: Readonly<Record<string, readonly { start: number; end: number }[] | undefined>> = rule?.numbers ?? {};
      const [range, ...more] = sets[component] ?? [];
      assert.ok(
        range && more.length === 0,
        `${name} to ${label.dst}: ${component} is ${JSON.stringify(sets[component])}`,
      );
      assert.ok(range.start >= least && range.end <= most, `${name} to ${label.dst}: ${component} from ${range.start}`);
      met.add(name);
    }
  }
  assert.deepEqual([...met].sort(), [...asked.keys()].sort());
});

test('a flowrule that would hit what the customer accepts stays proposed', { skip }, async () => {
  const shown = await stage.levee.good('GET', `/flowrule?dst=${withAccept}`, stage.provider.key);
  assert.ok(shown.length > 0);
  for (const { state, state_reason } of shown) {
    assert.equal(state, 'proposed');
    assert.match(state_reason, /accept/);
  }
  assert.equal(watch.announcedMs.has(withAccept), false);
});

test('by the policy edge the router itself stops the flood, and nothing is announced', { skip }, () => {
  const label = traffic.attacks.find(({ dst }) => dst === edgeGuarded);
  assert.ok(label);
  console.log(`${floodPassed} of ${label.packets} packets to ${edgeGuarded} passed`);
  assert.ok(floodPassed < label.packets / 2, `${floodPassed} of ${label.packets} packets passed`);
  assert.equal(found.get(label)?.last.mitigation, 'edge');
  assert.equal(watch.announcedMs.has(edgeGuarded), false);
});

test('attacks are found in flows as softflowd tells them by IPFIX', { skip }, async () => {
  const prepared = stage.prepare(byFlows);
  const exporter = await Exporter.softflowd({ ...stage.exporting(), version: 10 });
  const sinceMs = Date.now();
  const replay = await stage.replay(prepared);
  try {
    await replay.finished;
    await findAll(prepared, sinceMs);
    printTimes(prepared, replay);
    for (const label of prepared.attacks) assert.deepEqual(found.get(label)?.last.vectors, [label.name], label.dst);
  } finally {
    await replay.stop();
    await exporter.stop();
  }
});

test('a killed detector and a killed speaker lose no attack, double none, and withdraw nothing', { skip }, async () => {
  const prepared = stage.prepare(throughCrashes);
  const exporter = await Exporter.sflow(stage.exporting());
  const sinceMs = Date.now();
  const replay = await stage.replay(prepared);
  const atPeer = async (dst: string): Promise<boolean> =>
    (await stage.bird.flowRoutes()).some((route) => route.dst === `${dst}/32`);
  const [first, second, last] = prepared.attacks;
  assert.ok(first && second && last);
  try {
    await until('the first attacks to be announced', 10_000, async () => {
      return replay.begun(2) !== undefined && (await atPeer(first.dst));
    });
    const { detector } = stage.levee.processes;
    assert.ok(detector);
    process.kill(detector, 'SIGKILL');
    await until('the detector to be started again', 15_000, () => {
      const next = stage.levee.processes.detector;
      return next !== undefined && next !== detector && isAlive(next);
    });
    await stage.gobgpd.kill();
    await stage.gobgpd.start();
    await until('the last attack to be announced', 15_000, () => atPeer(last.dst));
    await replay.finished;
    await findAll(prepared, sinceMs);
    printTimes(prepared, replay);
    const { active, atPeer: routes } = await watch.routes();
    assert.deepEqual(routes, active);
  } finally {
    await replay.stop();
    await exporter.stop();
  }
});

test('when an attack is over it is ended, and its routes and rules are gone', { skip }, async () => {
  const seconds = holdSeconds + measureHoldSeconds + 10;
  await until('all attacks to end', seconds * 1000, () =>
    [...watch.attacks.values()].every(({ last }) => last.state === 'ended'),
  );
  await until('the peer to have no routes', seconds * 1000, async () => (await stage.bird.flowCount()) === 0);
  const { key } = stage.provider;
  assert.deepEqual(await stage.levee.good('GET', '/flowrule?state=active', key), []);
  await until('the edge to have no rules of attacks', 10_000, async () => {
    const rules = await stage.levee.good('GET', '/firewall/rule', key);
    return rules.length === 2;
  });
  await watch.stop();
  assert.equal(watch.attacks.size, found.size, 'none was recorded that was not asked about');
  assert.ok(watch.announcedMs.size >= 15);
  for (const { last } of watch.attacks.values()) {
    const withdrawn = watch.withdrawnMs.get(last.dst);
    const kept = (withdrawn ?? Number.POSITIVE_INFINITY) - Date.parse(last.ended_at);
    assert.ok(kept >= measureHoldSeconds * 1000, `${last.dst}: its routes were withdrawn ${kept} ms after its end`);
  }
});
