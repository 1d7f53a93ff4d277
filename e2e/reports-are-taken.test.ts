/** The detector's end of a report held against the control plane's: each has bounds of its own, and an attack goes by both. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { vectors } from '@levee/core/detection/vector.ts';
import type { SlotProfile } from '@levee/detector/bus/port.ts';
import { policy, Rig } from '@levee/detector/detect/testing/rig.ts';
import { parseDetectorReport } from '@levee/server/detectors/parse-report.ts';
import fc from 'fast-check';

const victim = '203.0.113.7';
const run = '00000000-0000-4000-8000-00000000ffff';
const figure = fc.oneof(
  fc.double(),
  fc.integer({ min: -10, max: 70_000 }),
  fc.constantFrom(
    65_535,
    65_536,
    65_575,
    100_000,
    2 ** 32,
    2 ** 53,
    1e15,
    1e16,
    1e300,
    Number.POSITIVE_INFINITY,
    Number.NaN,
  ),
);
const keys = fc.array(fc.tuple(figure, figure), { maxLength: 64 });
const texts = fc.array(
  fc.tuple(fc.oneof(fc.string(), fc.constantFrom('198.51.100.1', '2001:DB8::1', 'e1/4', 'e1/99999999999')), figure),
  { maxLength: 64 },
);
const profile: fc.Arbitrary<SlotProfile> = fc.record({
  dst: fc.constant(victim),
  vector: fc.integer({ min: 0, max: vectors.length - 2 }),
  samples: figure,
  protocols: keys,
  sourcePorts: keys,
  destinationPorts: keys,
  icmp: keys,
  tcpFlags: keys,
  lengths: keys,
  shortest: figure,
  longest: figure,
  laterFragments: figure,
  sources: texts,
  distinctSources: figure,
  entries: texts,
});
const row = fc.record({
  dst: fc.constantFrom(victim, '203.0.113.9', '2001:db8::9'),
  vector: fc.constantFrom(...vectors.slice(0, -1)),
  packets: figure,
  bytes: figure,
  samples: figure,
});
const packet = fc.record({
  at_ms: fc.constant(1_700_000_000_000),
  scale: figure,
  exporter: fc.constant('e1'),
  length: figure,
  header: fc.constant('RQAA'),
});

function assertTaken(attacks: readonly DetectedAttack[]): void {
  const status = { listen: [], receive_buffers: [], kernel_drops: 0, tracked_destinations: 0, memory_bytes: 0 };
  // As it is sent: what JSON has no word for is null there.
  const body: unknown = JSON.parse(JSON.stringify({ run, sequence: 0, attacks, status }));
  const parsed = parseDetectorReport(body);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.message);
  assert.deepEqual(parsed.value.faults, { refused: [] });
  for (const { length } of attacks.flatMap((attack) => attack.profile)) {
    assert.ok(0 <= length.min && length.min <= length.p5 && length.p5 <= length.max && length.max <= 65_535);
  }
}

test('whatever collectors tell of slots, profiles and packets, what is reported of attacks is taken', () => {
  const slot = fc.record({ rows: fc.array(row, { maxLength: 8 }), profiles: fc.array(profile, { maxLength: 4 }) });
  fc.assert(
    fc.property(
      fc.array(slot, { minLength: 1, maxLength: 8 }),
      fc.array(packet, { maxLength: 5 }),
      (slots, packets) => {
        const rig = new Rig({ policies: [policy({}, { hold_s: 5 })] });
        rig.run(1, [{ dst: victim, vector: 'udp-other', pps: 100_000 }]);
        const asked = rig.sent.find(({ type }) => type === 'samples_wanted');
        if (asked?.type === 'samples_wanted') {
          rig.hear({ type: 'samples', collector: 'a', request: asked.request, held: 1, packets });
        }
        for (const { rows, profiles } of slots) rig.tell(rows, profiles);
        rig.run(20);
        assertTaken(rig.attacks);
        assert.equal(rig.phases('ended').length, rig.phases('started').length);
      },
    ),
    { numRuns: 300 },
  );
});
