/**
 * Guarantees for an attack on a whole Levee with its own edge: what a detector reports is dropped by the kernel while what a
 * customer's rule accepts passes, whatever its priority; and the kernel lets everything through again when it is over.
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

const prefix = '203.0.113.0/24';
const attacked = '203.0.113.10';
const open = '203.0.113.20';
const payload = new Uint8Array(900);

test('a reported attack is dropped by the kernel, accepted traffic and other traffic passes, and all does when it is over', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'mitigation' });
  using flood = new PacketProbe(path, { port: 4_000, sourcePort: 53, payload });
  using accepted = new PacketProbe(path, { port: 4_001, sourcePort: 53, payload });
  using others = new PacketProbe(path, { port: 9, sourcePort: 40_003 });
  const levee = await RunningLevee.start({ environment: { LEVEE_EDGE_NETNS: path.router.name } });
  const passing = async () => Promise.all([flood, accepted, others].map((probe) => probe.passes(attacked, open)));
  try {
    const operator = levee.operatorKey;
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const policy = { scope: attacked, mitigation: 'edge', mitigation_hold_s: 0 };
    await levee.good('POST', '/operator/detection-policy', operator, policy);
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
    const report = async (attack: DetectedAttack) => {
      const status = { listen: [], receive_buffers: [], kernel_drops: 0, tracked_destinations: 1, memory_bytes: 1 };
      const body: DetectorReport = { run, sequence: ++sequence, attacks: [attack], status };
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
    await report(attack);
    const rules = async () =>
      (await levee.good('GET', `/firewall/rule?dst=${attacked}`, key)).filter(
        ({ origin }: { origin?: string }) => origin === 'attack',
      );
    await until('the measure to be in force', 20_000, async () => (await rules())[0]?.state === 'active');
    assert.deepEqual(await passing(), [false, true, true]);
    for (let round = 0; round < 20; round++) assert.deepEqual(await flood.passes(attacked, open), false);
    const [told] = await levee.good('GET', `/attacks?dst=${attacked}`, key);
    assert.equal(told.mitigation, 'edge');
    assert.match(path.router.run('nft', ['list', 'table', 'inet', 'levee']), /udp sport 53 .*drop/);
    await until('the edge to have counted what it dropped', 30_000, async () => (await rules())[0].hits.packets >= 21);

    await report({ ...attack, phase: 'ended', ended_ms: startedMs + 400 });
    await until('the measure to be gone', 20_000, async () => (await rules()).length === 0);
    assert.deepEqual(await passing(), [true, true, true]);
  } finally {
    await levee.stop();
  }
});
