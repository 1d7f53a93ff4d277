/**
 * Guarantees for attacks on a whole Levee with its own edge: what a detector reports is dropped by the kernel while what a
 * customer's rule accepts passes, whatever its priority; SYNs are limited, answers pass that were asked for; and the kernel lets
 * everything through again when it is over.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { DetectedAttack, DetectorReport } from '@levee/contract/detector.ts';
import { profileOf } from '@levee/core/mitigation/testing/profile.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe } from './packet-probe.ts';
import { RunningLevee, until } from './running-levee.ts';
import { TcpProbe } from './tcp-probe.ts';

const prefix = '203.0.113.0/24';
const attacked = '203.0.113.10';
const open = '203.0.113.20';
/** By SYNs, and by answers to SYNs that it never sent. */
const flooded = '203.0.113.11';
const answered = '203.0.113.12';
const elsewhere = '198.51.100.7';
const [SYN, SYN_ACK] = [0x02, 0x12];
const synLimit = 100;
const payload = new Uint8Array(900);

test('reported attacks are dropped or limited by the kernel, what was accepted or asked for passes, and all does when it is over', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'mitigation' });
  using flood = new PacketProbe(path, { port: 4_000, sourcePort: 53, payload });
  using accepted = new PacketProbe(path, { port: 4_001, sourcePort: 53, payload });
  using others = new PacketProbe(path, { port: 9, sourcePort: 40_003 });
  using tcp = new TcpProbe(path);
  const levee = await RunningLevee.start({ environment: { LEVEE_EDGE_NETNS: path.router.name } });
  const passing = async () => Promise.all([flood, accepted, others].map((probe) => probe.passes(attacked, open)));
  try {
    const operator = levee.operatorKey;
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const policy = { scope: attacked, mitigation: 'edge', mitigation_hold_s: 0 };
    await levee.good('POST', '/operator/detection-policy', operator, policy);
    const strict = { mitigation: 'edge', mitigation_hold_s: 0, thresholds: { 'tcp-syn': { pps: synLimit } } };
    for (const scope of [flooded, answered])
      await levee.good('POST', '/operator/detection-policy', operator, { scope, ...strict });
    const accept = {
      dst: attacked,
      protocol: 'udp',
      port: { dst: { start: 4_001 } },
      action: 'accept',
      priority: 2147483647,
    };
    await levee.good('POST', '/firewall/rule', key, accept, { prefer: 'wait=20' });
    assert.deepEqual(await passing(), [true, true, true]);

    const detector = await levee.good('POST', '/operator/detector', operator, { name: 'elsewhere' });
    const run = randomUUID();
    let sequence = 0;
    const report = async (...attacks: DetectedAttack[]) => {
      const status = { listen: [], receive_buffers: [], kernel_drops: 0, tracked_destinations: 1, memory_bytes: 1 };
      const body: DetectorReport = { run, sequence: ++sequence, attacks, status };
      const response = await fetch(`${levee.summary.address}/detector/v1/report`, {
        method: 'POST',
        headers: { authorization: `Bearer ${detector.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      assert.equal(response.status, 200, await response.clone().text());
      assert.deepEqual(await response.json(), { refused: [] });
    };
    const startedMs = Date.now() - 500;
    const attack: DetectedAttack = {
      id: randomUUID(),
      dst: attacked,
      phase: 'started',
      vectors: ['udp-amplification'],
      started_ms: startedMs,
      detected_ms: startedMs + 250,
      measured: { at_ms: startedMs + 250, pps: 100_000, bps: 800_000_000 },
      packets: 25_000,
      bytes: 25_000_000,
      sampled: 500,
      threshold: { policy: 'default', vector: 'udp-amplification', metric: 'pps', value: 10_000, observed: 100_000 },
      profile: [profileOf('udp-amplification', { source_ports: [{ value: 53, share: 1 }] })],
      timeline: [],
      packet_samples: [],
      entries: [],
    };
    const other = (dst: string, vector: string): DetectedAttack => ({
      ...attack,
      id: randomUUID(),
      dst,
      vectors: [vector],
      threshold: { ...attack.threshold, vector },
      profile: [profileOf(vector)],
    });
    const [syns, answers] = [other(flooded, 'tcp-syn'), other(answered, 'tcp-syn-ack')];
    await report(attack, syns, answers);
    const rules = async (dst = attacked) =>
      (await levee.good('GET', `/firewall/rule?dst=${dst}`, key)).filter(
        ({ origin }: { origin?: string }) => origin === 'attack',
      );
    for (const [dst, count] of [
      [attacked, 1],
      [flooded, 1],
      [answered, 2],
    ] as const) {
      await until(`the measures on ${dst} to be in force`, 20_000, async () => {
        const shown = await rules(dst);
        return shown.length === count && shown.every(({ state }: { state: string }) => state === 'active');
      });
    }
    assert.deepEqual(await passing(), [false, true, true]);
    for (let round = 0; round < 20; round++) assert.deepEqual(await flood.passes(attacked, open), false);
    const syn = { source: elsewhere, destination: flooded, sourcePort: 5_000, destinationPort: 443, flags: SYN };
    const began = performance.now();
    const through = await tcp.towardsCustomer(syn, 10 * synLimit, open);
    // A burst of a second's worth at most, and what the limit lets through meanwhile.
    const most = synLimit * (1 + (performance.now() - began) / 1000) + 1;
    assert.ok(through > 0 && through <= most, `${through} SYNs of ${10 * synLimit}, at most ${most}`);
    const connection = { sourcePort: 443, destinationPort: 50_000, flags: SYN_ACK };
    const answer = { source: elsewhere, destination: answered, ...connection };
    assert.equal(await tcp.towardsCustomer(answer, 20, open), 0, 'answers that nobody asked for');
    const asking = { source: answered, destination: elsewhere, sourcePort: 50_001, destinationPort: 443, flags: SYN };
    await tcp.fromCustomer(asking);
    assert.equal(await tcp.towardsCustomer({ ...answer, destinationPort: 50_001 }, 1, open), 1, 'an answer that was');

    const [told] = await levee.good('GET', `/attacks?dst=${attacked}`, key);
    assert.equal(told.mitigation, 'edge');
    assert.match(path.router.run('nft', ['list', 'table', 'inet', 'levee']), /udp sport 53 .*drop/);
    await until('the edge to have counted what it dropped', 30_000, async () => (await rules())[0].hits.packets >= 21);

    const ended = { phase: 'ended', ended_ms: startedMs + 400 } as const;
    await report(...[attack, syns, answers].map((each) => ({ ...each, ...ended })));
    for (const dst of [attacked, flooded, answered]) {
      await until(`the measures on ${dst} to be gone`, 20_000, async () => (await rules(dst)).length === 0);
    }
    assert.equal(await tcp.towardsCustomer(syn, 10 * synLimit, open), 10 * synLimit);
    assert.deepEqual(await passing(), [true, true, true]);
  } finally {
    await levee.stop();
  }
});
