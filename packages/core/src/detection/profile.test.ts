import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { keysOfEach, type ProfilePart, ProfileWindow } from './profile.ts';

function part(more: Partial<ProfilePart> = {}): ProfilePart {
  return {
    samples: 100,
    protocols: [[17, 100]],
    sourcePorts: [[53, 100]],
    destinationPorts: [],
    icmp: [],
    tcpFlags: [],
    lengths: [
      [4, 4],
      [28, 96],
    ],
    shortest: 64,
    longest: 460,
    laterFragments: 25,
    sources: [['198.51.100.1', 100]],
    distinctSources: 1,
    entries: [],
    ...more,
  };
}

test('shares are of all samples, what collectors did not list included', () => {
  const profile = new ProfileWindow(0);
  profile.add(part({ sourcePorts: [[53, 60]] }), 0);
  profile.add(part({ sourcePorts: [[123, 30]] }), 250);
  const shares = profile.shares();
  assert.deepEqual(shares.source_ports, [
    { value: 53, share: 0.3 },
    { value: 123, share: 0.15 },
  ]);
  assert.equal(shares.samples, 200);
  assert.equal(shares.later_fragments, 0.25);
});

test('at most a twentieth is shorter than the length that is told, whatever was not listed', () => {
  const lengths = fc.array(fc.tuple(fc.integer({ min: 2, max: 90 }), fc.integer({ min: 1, max: 50 })), {
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(lengths, fc.integer({ min: 0, max: 40 }), (drawn, unlisted) => {
      const steps = new Map(drawn);
      const listed = [...steps.values()].reduce((sum, count) => sum + count, 0);
      const shortest = 20;
      const profile = new ProfileWindow(0);
      profile.add(part({ samples: listed + unlisted, lengths: [...steps], shortest, longest: 1500 }), 0);
      const { p5, min } = profile.shares().length;
      assert.equal(min, shortest);
      // Those that were not listed may all be short; a step's packets lie anywhere in it.
      const shorter = [...steps].reduce((sum, [step, count]) => (step * 16 < p5 ? sum + count : sum), unlisted);
      assert.ok(p5 === min || shorter <= 0.05 * (listed + unlisted), `${p5}`);
    }),
  );
});

test('an attack that changes its shape is told by the new one half a minute later', () => {
  const profile = new ProfileWindow(0);
  for (let at = 0; at < 20_000; at += 250) profile.add(part(), at);
  for (let at = 20_000; at < 55_000; at += 250) profile.add(part({ sourcePorts: [[123, 100]], shortest: 400 }), at);
  const { source_ports, length } = profile.shares();
  assert.deepEqual(source_ports, [{ value: 123, share: 1 }]);
  assert.equal(length.min, 400);
});

test('how many sources there were is known within a tenth, few or as many as samples', () => {
  for (const count of [1, 20, 500, 3_000]) {
    const profile = new ProfileWindow(0);
    let next = 0;
    for (let slot = 0; slot < 50; slot++) {
      const sources = Array.from(
        { length: 60 },
        () => [`10.0.${(next++ % count) >> 8}.${(next % count) & 255}`, 1] as const,
      );
      const distinct = new Set(sources.map(([source]) => source));
      profile.add(
        part({ samples: 60, sources: [...distinct].map((source) => [source, 1]), distinctSources: distinct.size }),
        slot * 250,
      );
    }
    const expected = Math.min(count, 3_000);
    const { distinct_sources } = profile.shares();
    assert.ok(Math.abs(distinct_sources - expected) <= Math.max(2, expected / 10), `${count}: ${distinct_sources}`);
  }
});

test('nobody can make it grow: whatever is told, 64 of each kind are kept to', () => {
  const profile = new ProfileWindow(0);
  for (let slot = 0; slot < 100; slot++) {
    const keys = Array.from({ length: 64 }, (_, key) => [slot * 64 + key, 1] as const);
    profile.add(
      part({
        sourcePorts: keys,
        sources: keys.map(([key]) => [`10.0.${key >> 8}.${key & 255}`, 1]),
        distinctSources: 64,
      }),
      slot * 100,
    );
  }
  const shares = profile.shares();
  assert.equal(shares.source_ports.length, 64);
  assert.equal(shares.sources.length, 64);
});

test('lengths are in order and those of packets, whatever is told of them', () => {
  const length = fc.oneof(fc.integer({ min: -1, max: 200_000 }), fc.double());
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 1, max: 50 })), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(length, length, steps), { minLength: 1, maxLength: 4 }), (told) => {
      const profile = new ProfileWindow(0);
      for (const [shortest, longest, lengths] of told) profile.add(part({ shortest, longest, lengths }), 0);
      const { min, p5, max } = profile.shares().length;
      assert.ok(0 <= min && min <= p5 && p5 <= max && max <= 65_535, `${min} ${p5} ${max}`);
      assert.ok([min, p5, max].every(Number.isInteger));
    }),
  );
});

test('many profiles keep fewer keys each, those with the most, and the shares of these are as before', () => {
  assert.deepEqual([0, 1_024, 1_025, 4_096, 49_152].map(keysOfEach), [128, 128, 64, 32, 8]);
  const profile = new ProfileWindow(0);
  const sourcePorts = Array.from({ length: 64 }, (_, key) => [key, key === 5 ? 500 : 1] as const);
  profile.add(part({ samples: 1_000, sourcePorts }), 0);
  profile.fit(8);
  assert.equal(profile.shares().source_ports.length, 8);
  assert.deepEqual(profile.shares().source_ports[0], { value: 5, share: 0.5 });
  for (let slot = 0; slot < 50; slot++) {
    profile.add(part({ sourcePorts: sourcePorts.map(([key]) => [key + slot * 64, 1]) }), slot);
    assert.ok(profile.shares().source_ports.length <= 16);
  }
});

test('of nothing there are no shares', () => {
  const { samples, length, source_ports } = new ProfileWindow(0).shares();
  assert.deepEqual(
    { samples, length, source_ports },
    { samples: 0, length: { min: 0, p5: 0, max: 0 }, source_ports: [] },
  );
});
