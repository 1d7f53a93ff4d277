import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { LONGEST_SPREAD_SLOTS, SpreadFlows } from './spread.ts';

interface Flow {
  readonly destination: number;
  readonly packets: number;
  readonly bytes: number;
  readonly durationMilliseconds: number;
}

const flow = fc.record({
  destination: fc.nat(3),
  packets: fc.integer({ min: 1, max: 1_000_000 }),
  bytes: fc.integer({ min: 20, max: 1_000_000_000 }),
  durationMilliseconds: fc.oneof(fc.nat(600), fc.nat(100_000)),
});

/** By slot and destination: packets, octets, samples. */
class Slots {
  readonly slots: number[][][] = [];
  readonly add = (
    destination: number,
    _b: number,
    _c: number,
    _d: number,
    _tag: number,
    packets: number,
    bytes: number,
    samples: number,
  ): void => {
    const slot = this.slots.at(-1) as number[][];
    const sums = slot[destination] ?? [0, 0, 0];
    slot[destination] = [(sums[0] ?? 0) + packets, (sums[1] ?? 0) + bytes, (sums[2] ?? 0) + samples];
  };
}

function run(spread: SpreadFlows, bySlot: readonly (readonly Flow[])[]): number[][][] {
  const result = new Slots();
  for (let slot = 0; slot < bySlot.length + LONGEST_SPREAD_SLOTS; slot++) {
    result.slots.push([]);
    if (slot > 0) spread.nextSlot(result.add);
    for (const { destination, packets, bytes, durationMilliseconds } of bySlot[slot] ?? []) {
      spread.add(destination, 0, 0, 0, 1, packets, bytes, packets, durationMilliseconds, result.add);
    }
  }
  return result.slots;
}

test('all slots together have exactly what the flows had, and each slot its part of it', () => {
  fc.assert(
    fc.property(fc.array(fc.array(flow, { maxLength: 5 }), { maxLength: 30 }), (bySlot) => {
      const spread = new SpreadFlows();
      const slots = run(spread, bySlot);
      for (let destination = 0; destination < 4; destination++) {
        const flows = bySlot.flatMap((each, slot) => each.map((one) => ({ ...one, slot })));
        const own = flows.filter((each) => each.destination === destination);
        for (const [column, of] of [(each: Flow) => each.packets, (each: Flow) => each.bytes].entries()) {
          const seen = slots.reduce((sum, slot) => sum + (slot[destination]?.[column] ?? 0), 0);
          assert.equal(
            seen,
            own.reduce((sum, each) => sum + of(each), 0),
          );
          for (const [at, slot] of slots.entries()) {
            let expected = 0;
            for (const each of own) {
              const lasts = Math.min(240, Math.max(1, Math.ceil(each.durationMilliseconds / 250)));
              if (at >= each.slot && at < each.slot + lasts) expected += of(each) / lasts;
            }
            const off = Math.abs((slot[destination]?.[column] ?? 0) - expected);
            assert.ok(off <= (own.length * 240) / 4096, `slot ${at}: ${off} beside ${expected}`);
          }
        }
      }
      assert.equal(spread.size, 0);
      assert.equal(spread.unspread, 0);
    }),
    { numRuns: 50 },
  );
});

test('flows that there is no room for count at once, and are told', () => {
  const spread = new SpreadFlows(256, 1024);
  const flows = Array.from({ length: 3000 }, (_, i): Flow => {
    return { destination: i % 300, packets: 10, bytes: 1000, durationMilliseconds: 10_000 };
  });
  const slots = run(spread, [flows]);
  const seen = slots.flat().reduce((sum, sums) => sum + (sums?.[0] ?? 0), 0);
  assert.equal(seen, 30_000);
  assert.ok(spread.unspread >= 3000 - 1024);
  assert.ok(spread.octets < 256 * 60 + 1024 * 32 + 1);
});
