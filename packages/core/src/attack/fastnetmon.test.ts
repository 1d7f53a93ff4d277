import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastnetmonReport } from '@levee/contract/schemas/attack-report.ts';
import fc from 'fast-check';
import { formatAddress } from '../net/address.ts';
import { type FastnetmonAttack, parseFastnetmon } from './fastnetmon.ts';

function attackOf(report: FastnetmonReport): FastnetmonAttack {
  const parsed = parseFastnetmon(report);
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.attack;
}

const faultsOf = (report: FastnetmonReport) => {
  const parsed = parseFastnetmon(report);
  return parsed.ok ? [] : parsed.problems.map(({ field, code }) => `${field} ${code}`);
};

/** What the community edition passes with a ban, figures of our own. */
const text = `IP: 203.0.113.7
Attack type: udp_flood
Initial attack power: 148211 packets per second
Peak attack power: 151902 packets per second
Attack direction: incoming
Attack protocol: udp
Total incoming traffic: 1204 mbps
Total outgoing traffic: 3 mbps
Total incoming pps: 148211 packets per second
Total outgoing pps: 610 packets per second
Total incoming flows: 0 flows per second
Average incoming traffic: 1204 mbps
Incoming udp pps: 148100 packets per second

2026-01-31 12:00:00.104233 198.51.100.9:123 > 203.0.113.7:40112 protocol: udp frag: 0  packets: 3 size: 482 bytes ttl: 58 sample ratio: 1
2026-01-31 12:00:00.104301 198.51.100.22:123 > 203.0.113.7:40113 protocol: udp frag: 0  packets: 1 size: 482 bytes ttl: 52 sample ratio: 1
2026-01-31 12:00:00.104377 203.0.113.7:40112 > 198.51.100.9:123 protocol: udp frag: 0  packets: 9 size: 90 bytes ttl: 64 sample ratio: 1
`;

test('the text format: figures of the traffic that comes in, and what the sampled packets say', () => {
  const attack = attackOf({ ip: '203.0.113.7', action: 'ban', direction: 'incoming', pps: 148211, details: text });
  assert.deepEqual(attack, {
    target: attack.target,
    phase: 'started',
    attackId: undefined,
    vectors: ['udp_flood'],
    packetsPerSecond: 151_902,
    bitsPerSecond: 1_204_000_000,
    threshold: undefined,
    topSources: [
      { source: '198.51.100.9', share: 0.75 },
      { source: '198.51.100.22', share: 0.25 },
    ],
    topSourcePorts: [{ port: 123, share: 1 }],
    topDestinationPorts: [
      { port: 40112, share: 0.75 },
      { port: 40113, share: 0.25 },
    ],
  });
  assert.equal(formatAddress(attack.target), '203.0.113.7');
});

const document: FastnetmonReport & { packet_dump_detailed?: unknown } = {
  ip: '2001:db8::7',
  action: 'ban',
  alert_scope: 'host',
  attack_details: {
    attack_uuid: '7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11',
    attack_severity: 'high',
    attack_type: 'unknown',
    initial_attack_power: 90_500,
    peak_attack_power: 121_000,
    attack_direction: 'incoming',
    attack_protocol: 'tcp',
    attack_detection_threshold: 'tcp_syn_packets_per_second',
    host_group: 'web',
    total_incoming_pps: 90_500,
    total_incoming_traffic: 5_792_000,
  },
  packet_dump_detailed: [
    {
      source_ip: '2001:db8:9::1',
      destination_ip: '2001:db8:0:0::7',
      source_port: 443,
      destination_port: 80,
      packets: 2,
    },
    { source_ip: 'nonsense', destination_ip: '2001:db8::7' },
    'nonsense',
    null,
    {
      source_ip: '2001:db8:9::1',
      destination_ip: '2001:db8::7',
      source_port: -4,
      destination_port: 1e9,
      packets: 1e300,
    },
  ],
};

test('the JSON format: its own identifier, bytes as bits, the threshold that fired', () => {
  const attack = attackOf(document);
  assert.deepEqual(attack, {
    target: attack.target,
    phase: 'started',
    attackId: '7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11',
    vectors: ['tcp'],
    packetsPerSecond: 121_000,
    bitsPerSecond: 46_336_000,
    threshold: { metric: 'tcp_syn_packets_per_second', policy: 'web' },
    topSources: [{ source: '2001:db8:9::1', share: 1 }],
    topSourcePorts: [{ port: 443, share: 0.6667 }],
    topDestinationPorts: [{ port: 80, share: 0.6667 }],
  });
});

test('ban and partial_block begin an attack, unban ends it, every other word tells more of it', () => {
  const phaseOf = (action: string) => attackOf({ ip: '203.0.113.7', action }).phase;
  assert.deepEqual(['ban', 'partial_block', 'unban', 'attack_details', 'status', 'constructor'].map(phaseOf), [
    'started',
    'started',
    'ended',
    'changed',
    'changed',
    'changed',
  ]);
});

test('what goes out, what names no host and what is no address are refused by field', () => {
  assert.deepEqual(faultsOf({ ip: '203.0.113.7', action: 'ban', direction: 'outgoing' }), ['/direction outgoing']);
  assert.deepEqual(faultsOf({ ip: '203.0.113.7', action: 'ban', details: 'Attack direction: outgoing\n' }), [
    '/direction outgoing',
  ]);
  const outgoing = { attack_direction: 'incoming', attack_detection_threshold_direction: 'outgoing' };
  assert.deepEqual(faultsOf({ ip: '203.0.113.0/24', action: 'ban', attack_details: outgoing }), [
    '/ip invalid_address',
    '/attack_details/attack_direction outgoing',
  ]);
  assert.deepEqual(faultsOf({ ip: '203.0.113.7', action: 'ban', alert_scope: 'hostgroup' }), [
    '/alert_scope not_allowed',
  ]);
});

test('the first line of a name stands: a payload cannot say another thing behind it', () => {
  const attack = attackOf({
    ip: '203.0.113.7',
    action: 'ban',
    details: `${text}Attack type: forged\nPeak attack power: 999999999 packets per second\n`,
  });
  assert.deepEqual([attack.vectors, attack.packetsPerSecond], [['udp_flood'], 151_902]);
});

test('no text and no document makes it throw, and what comes of it is within bounds', () => {
  const line = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.constantFrom(...text.split('\n')),
    fc.tuple(fc.constantFrom(...text.split('\n')), fc.string({ maxLength: 10 })).map(([known, more]) => known + more),
  );
  const report = fc.record({
    ip: fc.constant('203.0.113.7'),
    action: fc.string({ minLength: 1, maxLength: 20 }),
    details: fc.array(line, { maxLength: 30 }).map((lines) => lines.join('\n')),
    packet_dump_detailed: fc.anything(),
    attack_details: fc.option(
      fc.record({
        attack_uuid: fc.string(),
        attack_type: fc.string(),
        host_group: fc.string(),
        attack_detection_threshold: fc.string(),
      }),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(report, (given) => {
      const parsed = parseFastnetmon(given as FastnetmonReport);
      if (!parsed.ok) return;
      const { vectors, packetsPerSecond, topSources = [], attackId = 'x', threshold } = parsed.attack;
      for (const vector of vectors) assert.match(vector, /^[a-z0-9][a-z0-9._-]{0,63}$/);
      assert.ok(packetsPerSecond === undefined || Number.isSafeInteger(packetsPerSecond));
      assert.ok(topSources.length <= 10);
      assert.match(attackId, /^[\x21-\x7e]{1,128}$/);
      assert.doesNotMatch(`${threshold?.metric}${threshold?.policy}`, /\p{Cc}/u);
    }),
    { numRuns: 300 },
  );
});
