import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amplifierPorts, vectors } from '@levee/core/detection/vector.ts';
import type { SlotProfile } from '../bus/port.ts';
import { Dice } from './testing/dice.ts';
import { type Flow, MONDAY, policy, Rig, slotReport } from './testing/rig.ts';

const victim = '203.0.113.7';
const single = vectors.filter((vector) => vector !== 'total');

function background(): Flow[] {
  return Array.from({ length: 40 }, (_, host): Flow[] => {
    const dst = `203.0.113.${host + 1}`;
    return [
      { dst, vector: 'tcp-ack', pps: 400, octets: 900 },
      { dst, vector: 'tcp-syn', pps: 20, octets: 60 },
      { dst, vector: 'udp-other', pps: 60, octets: 300 },
      { dst, vector: 'tcp-syn-ack', pps: 5, octets: 60 },
      { dst, vector: 'ip-fragment', pps: 2, octets: 1400 },
    ];
  }).flat();
}

test('an attack of each vector is found once, under its vector, and nothing else is', () => {
  for (const vector of single) {
    const rig = new Rig({ sampling: 64 });
    rig.run(10, background());
    const attack: Flow = { dst: victim, vector, pps: 250_000, octets: 90 };
    rig.run(20, [...background(), attack]);
    rig.run(60, background());
    assert.deepEqual(rig.found(), [`${victim} ${vector}`]);
    assert.equal(rig.phases('ended').length, 1, vector);
  }
});

test('background alone is no attack', () => {
  const rig = new Rig({ sampling: 64 });
  rig.run(300, background());
  assert.equal(rig.attacks.length, 0);
});

test('the parts of an amplification attack are one attack with both vectors', () => {
  const rig = new Rig({ sampling: 64 });
  rig.run(5, background());
  rig.run(20, [
    ...background(),
    { dst: victim, vector: 'udp-amplification', pps: 60_000, octets: 1400 },
    { dst: victim, vector: 'ip-fragment', pps: 55_000, octets: 1400 },
    { dst: victim, vector: 'icmp', pps: 300 },
  ]);
  rig.run(60, background());
  assert.deepEqual(rig.found(), [`${victim} ip-fragment,udp-amplification`]);
});

test('what is too much only in all is an attack in all, once', () => {
  const rig = new Rig({ policies: [policy({ total: { pps: 20_000 } })] });
  const flows: Flow[] = [
    { dst: victim, vector: 'tcp-ack', pps: 15_000 },
    { dst: victim, vector: 'udp-other', pps: 15_000 },
  ];
  rig.run(20, flows);
  rig.run(60);
  assert.deepEqual(rig.found(), [`${victim} total`]);
  const measured = rig.phases('changed').map(({ measured }) => measured.pps);
  assert.ok(Math.abs(Math.max(...measured) - 30_000) < 1, measured.join());
});

test('what is clearly too much in all, of vectors that are far from too much, is found as soon as a vector would be', () => {
  const rig = new Rig({ policies: [policy({ total: { pps: 20_000 } })] });
  rig.run(2);
  const flows = (['tcp-ack', 'udp-other', 'gre', 'esp'] as const).map((vector): Flow => {
    return { dst: victim, vector, pps: 20_000 };
  });
  const setIn = rig.slotMs;
  rig.run(0.5, flows);
  assert.ok((rig.phases('started')[0]?.detected_ms ?? Number.POSITIVE_INFINITY) - setIn < 600);
  rig.run(20, flows);
  assert.deepEqual(rig.found(), [`${victim} total`]);
});

test('a vector that is too much half a second after the whole is what the attack is called by', () => {
  const rig = new Rig({ policies: [policy({ total: { pps: 20_000 }, 'udp-other': { pps: 22_000 } })] });
  const flood = (pps: number): Flow[] => [{ dst: victim, vector: 'udp-other', pps }];
  rig.run(2, flood(10_000));
  rig.slot(flood(60_000));
  rig.run(10, flood(60_000));
  assert.deepEqual(rig.found(), [`${victim} udp-other`]);
});

test('a single sampled packet, and eleven, are no attack, however much they stand for', () => {
  const rig = new Rig({ policies: [policy({ icmp: { pps: 100 } })] });
  const row = (samples: number) => ({
    dst: victim,
    vector: 'icmp' as const,
    packets: samples * 4096,
    bytes: samples * 4096 * 100,
    samples,
  });
  rig.tell([row(1)]);
  rig.run(5);
  rig.tell([row(11)]);
  rig.run(5);
  assert.equal(rig.attacks.length, 0);
  rig.tell([row(12)]);
  assert.deepEqual(rig.found(), [`${victim} icmp`]);
});

test('at nine tenths of the threshold fewer windows are too much than the bound of the error says', () => {
  for (const sampling of [16, 256, 1000]) {
    let fired = 0;
    const windows = 2_000;
    for (let window = 0; window < windows; window++) {
      const rig = new Rig({ sampling, seed: window * 7919 + sampling });
      rig.run(1, [{ dst: victim, vector: 'tcp-syn', pps: 9_000 }]);
      fired += rig.phases('started').length;
    }
    assert.ok(fired / windows < 0.025, `1:${sampling}: ${fired} of ${windows}`);
  }
});

test('of any course of sums the slot that is found is the one that the rule says', () => {
  const threshold = 2_000;
  for (let seed = 1; seed <= 300; seed++) {
    const dice = new Dice(seed);
    const scale = [1, 16, 64, 200][dice.below(4)] ?? 1;
    const level = (0.6 + dice.next()) * (threshold / scale / 4);
    const course = Array.from({ length: 24 }, () => (dice.next() < 0.1 ? 0 : dice.poisson(level)));
    let expected = -1;
    let inARow = 0;
    for (let slot = 0; slot < course.length && expected < 0; slot++) {
      const samples = course.slice(Math.max(0, slot - 3), slot + 1).reduce((sum, count) => sum + count, 0);
      const isTooMuch = samples >= 12 && samples * scale * (1 - 1.96 / Math.sqrt(samples)) > threshold;
      inARow = isTooMuch ? inARow + 1 : 0;
      const atLimit = threshold / scale;
      if (isTooMuch && (inARow >= 3 || samples - atLimit >= 4 * Math.sqrt(atLimit))) expected = slot;
    }
    const rig = new Rig({ policies: [policy({ gre: { pps: threshold } })] });
    let found = -1;
    for (const [slot, samples] of course.entries()) {
      const packets = samples * scale;
      rig.tell(samples === 0 ? [] : [{ dst: victim, vector: 'gre', packets, bytes: packets * 100, samples }]);
      if (found < 0 && rig.attacks.length > 0) found = slot;
    }
    assert.equal(found, expected, `seed ${seed}`);
  }
});

test('an attack begins when its first packets came, and what was counted before it was found is part of it', () => {
  const rig = new Rig();
  rig.run(5, [{ dst: victim, vector: 'udp-other', pps: 1_000 }]);
  const setIn = rig.slotMs + 125;
  rig.slot([{ dst: victim, vector: 'udp-other', pps: 60_000 }], 0.5);
  rig.run(9.75, [{ dst: victim, vector: 'udp-other', pps: 60_000 }]);
  rig.run(60, [{ dst: victim, vector: 'udp-other', pps: 1_000 }]);
  const [started] = rig.phases('started');
  const [ended] = rig.phases('ended');
  assert.ok(Math.abs((started?.started_ms ?? 0) - setIn) <= 30, `${(started?.started_ms ?? 0) - setIn} ms`);
  const end = setIn + 9_875;
  assert.ok(Math.abs((ended?.ended_ms ?? 0) - end) <= 250, `${(ended?.ended_ms ?? 0) - end} ms`);
  const packets = ended?.packets ?? 0;
  // The hold's background counts as well: 30 s of 1 000.
  assert.ok(Math.abs(packets - (60_000 * 9.875 + 31_000)) < 3_000, `${packets}`);
});

test('changes are told once a second at most, the timeline has each second once, and both end with the attack', () => {
  const rig = new Rig({ sampling: 16 });
  rig.run(30, [{ dst: victim, vector: 'tcp-syn', pps: 40_000 }]);
  rig.run(40);
  const times = rig.attacks.map(({ measured }) => measured.at_ms);
  for (const [index, at] of times.entries()) {
    const before = times[index - 1];
    if (before !== undefined && rig.attacks[index]?.phase === 'changed') assert.ok(at - before >= 1_000);
  }
  assert.ok(rig.phases('changed').length < 20);
  const seconds = rig.attacks.flatMap(({ timeline }) => timeline.map(({ at_ms }) => at_ms));
  assert.deepEqual(
    seconds,
    [...new Set(seconds)].sort((a, b) => a - b),
  );
  assert.ok(seconds.length >= 60);
  assert.equal(rig.attacks.at(-1)?.phase, 'ended');
});

test('an attack of an hour has seconds for ten minutes and minutes then', () => {
  const rig = new Rig();
  rig.run(1_200, [{ dst: victim, vector: 'tcp-syn', pps: 40_000 }]);
  const entries = rig.attacks.flatMap(({ timeline }) => timeline);
  assert.equal(entries.filter(({ seconds }) => seconds === 1).length, 600);
  const minutes = entries.filter(({ seconds }) => seconds === 60);
  assert.ok(minutes.length >= 8);
  assert.ok(minutes.every(({ pps }) => Math.abs(pps - 40_000) < 1));
});

test('what an attack that has begun looks like is told within half a second of its being known', () => {
  const rig = new Rig();
  rig.run(3);
  rig.slot([{ dst: victim, vector: 'udp-amplification', pps: 80_000 }]);
  assert.equal(rig.attacks[0]?.phase, 'started');
  assert.deepEqual(rig.attacks[0]?.profile[0]?.source_ports, []);
  const hot = rig.sent.filter(({ type }) => type === 'hot').at(-1);
  assert.ok(hot?.type === 'hot' && hot.detector === 'rig' && hot.destinations.includes(victim));
  const row = { dst: victim, vector: 'udp-amplification', packets: 20_000, bytes: 9_000_000, samples: 20_000 } as const;
  rig.tell([row], [profileOf(victim)]);
  const changed = rig.attacks.at(-1);
  assert.equal(changed?.phase, 'changed');
  assert.deepEqual(changed?.profile[0]?.source_ports, [{ value: 123, share: 1 }]);
  assert.deepEqual(changed?.profile[0]?.length, { min: 450, p5: 450, max: 480 });
  assert.deepEqual(changed?.entries, [
    { exporter: 'e1', interface: 4, share: 0.75 },
    { exporter: 'e1', interface: 4_294_967_295, share: 0.25 },
  ]);
});

test('what was known of a destination that came near is told with the start', () => {
  const rig = new Rig();
  rig.run(2, [{ dst: victim, vector: 'udp-amplification', pps: 7_000 }]);
  const row = { dst: victim, vector: 'udp-amplification', packets: 20_000, bytes: 9_000_000, samples: 20_000 } as const;
  rig.tell([row], [profileOf(victim)]);
  assert.equal(rig.attacks[0]?.phase, 'started');
  assert.deepEqual(rig.attacks[0]?.profile[0]?.source_ports, [{ value: 123, share: 1 }]);
});

test('packets of an attack are asked for, a thousand in all, and handed on a hundred at a time', () => {
  const rig = new Rig();
  rig.run(1_800, [{ dst: victim, vector: 'tcp-syn', pps: 40_000 }]);
  const asked = rig.sent.filter((message) => message.type === 'samples_wanted');
  assert.equal(asked[0]?.dst, victim);
  assert.ok(asked.length >= 5 && asked.length <= 8, `${asked.length}`);
  const packet = { at_ms: rig.nowMs, scale: 1, exporter: 'e1', length: 60, header: 'RQAA' };
  for (let times = 0; times < 20; times++) {
    rig.hear({
      type: 'samples',
      collector: 'a',
      request: asked[0]?.request ?? '',
      held: 500,
      packets: Array.from({ length: 100 }, () => packet),
    });
    rig.run(2, [{ dst: victim, vector: 'tcp-syn', pps: 40_000 }]);
  }
  const told = rig.attacks.map(({ packet_samples }) => packet_samples.length);
  assert.ok(Math.max(...told) <= 100);
  assert.equal(
    told.reduce((sum, count) => sum + count, 0),
    1_000,
  );
});

test('a slot is judged when all collectors have told of it, and 150 ms after the first when one does not', () => {
  const rig = new Rig({ collectors: ['a', 'b'] });
  rig.run(2);
  const rows = [{ dst: victim, vector: 'icmp', packets: 3_000, bytes: 300_000, samples: 3_000 }] as const;
  const start = rig.slotMs;
  rig.passTo(start + 270);
  rig.hear(slotReport('a', 100, start, rows));
  assert.equal(rig.attacks.length, 0);
  rig.passTo(start + 300);
  rig.hear(slotReport('b', 100, start, rows));
  assert.equal(rig.attacks.length, 1);
  const alone = new Rig({ collectors: ['a', 'b'] });
  alone.run(2);
  alone.passTo(start + 270);
  alone.hear(slotReport('a', 100, start, [...rows, ...rows]));
  alone.passTo(start + 419);
  assert.equal(alone.attacks.length, 0);
  alone.passTo(start + 421);
  assert.equal(alone.attacks.length, 1);
});

test('a collector whose clock is a minute off is measured all the same, and said to be off', () => {
  const rig = new Rig({ collectors: ['a', 'b'] });
  for (let slot = 0; slot < 40; slot++) {
    const start = MONDAY + slot * 250;
    rig.passTo(start + 270);
    const rows =
      slot < 20 ? [] : [{ dst: victim, vector: 'icmp', packets: 1_000, bytes: 9_000, samples: 1_000 } as const];
    rig.hear(slotReport('a', slot, start, rows));
    rig.hear(slotReport('b', slot, start - 60_000, rows));
  }
  assert.deepEqual(rig.found(), [`${victim} icmp`]);
  assert.ok(Math.abs((rig.attacks.at(-1)?.measured.pps ?? 0) - 8_000) < 10);
  assert.equal(rig.warnings.length, 1);
  assert.equal(rig.detection.status().late, 0);
});

test('nothing ends while no collector is heard, and everything a quarter of an hour later', () => {
  const rig = new Rig();
  rig.run(10, [{ dst: victim, vector: 'tcp-syn', pps: 40_000 }]);
  rig.skip(10 * 60_000);
  assert.equal(rig.phases('ended').length, 0);
  rig.skip(6 * 60_000);
  assert.equal(rig.phases('ended').length, 1);
  assert.equal(rig.warnings.length, 1);
});

test('traffic to what is not protected is nothing', () => {
  const rig = new Rig();
  rig.run(3, [{ dst: '198.51.100.9', vector: 'tcp-syn', pps: 1_000_000 }]);
  assert.equal(rig.attacks.length, 0);
  assert.equal(rig.detection.status().trackedDestinations, 0);
});

function profileOf(dst: string): SlotProfile {
  return {
    dst,
    vector: 0,
    samples: 200,
    protocols: [[17, 200]],
    sourcePorts: [[amplifierPorts[3] ?? 0, 200]],
    destinationPorts: [[4444, 200]],
    icmp: [],
    tcpFlags: [],
    lengths: [
      [28, 150],
      [30, 50],
    ],
    shortest: 450,
    longest: 480,
    laterFragments: 0,
    sources: [['198.51.100.1', 120]],
    distinctSources: 40,
    entries: [
      ['e1/4', 150],
      ['e1/4294967295', 50],
    ],
  };
}
