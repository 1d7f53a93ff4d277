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

const longest = LONGEST_SPREAD_SLOTS * 250;

const flow = fc.record({
  destination: fc.nat(3),
  packets: fc.integer({ min: 1, max: 1_000_000 }),
  bytes: fc.integer({ min: 20, max: 1_000_000_000 }),
  durationMilliseconds: fc.oneof(fc.nat(600), fc.nat(100_000), fc.nat(longest)),
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
      const { unspread } = spread;
      const became = spread.add(destination, 0, 0, 0, 1, packets, bytes, packets, durationMilliseconds, result.add);
      assert.equal(became, spread.unspread > unspread || durationMilliseconds > longest ? 'cut' : 'whole');
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
              const lasts = Math.max(1, Math.ceil(each.durationMilliseconds / 250));
              if (at >= each.slot && at < each.slot + lasts) expected += of(each) / lasts;
            }
            const off = Math.abs((slot[destination]?.[column] ?? 0) - expected);
            assert.ok(off <= (own.length * LONGEST_SPREAD_SLOTS) / 4096, `slot ${at}: ${off} beside ${expected}`);
          }
        }
      }
      assert.equal(spread.size, 0);
      assert.equal(spread.unspread, 0);
    }),
    { numRuns: 20 },
  );
});

test('of flows that there is no room for a second counts at once, and they are told', () => {
  const spread = new SpreadFlows(256, 1024);
  const flows = Array.from({ length: 3000 }, (_, i): Flow => {
    return { destination: i % 300, packets: 10, bytes: 1000, durationMilliseconds: 10_000 };
  });
  const slots = run(spread, [flows]);
  const seen = slots.flat().reduce((sum, sums) => sum + (sums?.[0] ?? 0), 0);
  assert.ok(spread.unspread >= 3000 - 1024);
  assert.equal(seen, (3000 - spread.unspread) * 10 + spread.unspread);
  assert.ok(spread.octets < 256 * 60 + 1024 * 36 + 1);
});

for (const minutes of [0.5, 1, 5, 30]) {
  test(`steady traffic that is told every ${minutes} minutes is its mean, from the first round of reports on`, () => {
    const spread = new SpreadFlows();
    const result = new Slots();
    const round = minutes * 240;
    for (let slot = 0; slot < 3 * round; slot++) {
      result.slots.push([]);
      if (slot > 0) spread.nextSlot(result.add);
      // 16 flows whose timeouts are spread over a round, of 1 000 packets of 500 octets a slot each.
      for (let flow = 0; flow < 16; flow++) {
        if (slot % round !== Math.floor((flow * round) / 16)) continue;
        spread.add(1, 0, 0, 0, 1, 1000 * round, 500_000 * round, 1000 * round, minutes * 60_000, result.add);
      }
    }
    for (const [slot, sums] of result.slots.entries()) {
      assert.deepEqual(slot < round ? [] : sums[1], slot < round ? [] : [16_000, 8_000_000, 16_000], `slot ${slot}`);
    }
  });
}

test('a download that is told once is its own rate, never more, and of one longer than flows are spread a part', () => {
  for (const minutes of [2, 30, 120]) {
    const spread = new SpreadFlows();
    const result = new Slots();
    const slots = minutes * 240;
    for (let slot = 0; slot < slots + 10; slot++) {
      result.slots.push([]);
      if (slot > 0) spread.nextSlot(result.add);
      // 40 Mbit/s.
      if (slot > 0) continue;
      const became = spread.add(1, 0, 0, 0, 1, 850 * slots, 1_250_000 * slots, 1, slots * 250, result.add);
      assert.equal(became, minutes < 32 ? 'whole' : 'cut');
    }
    const told = result.slots.map((sums) => sums[1]?.[1] ?? 0);
    assert.deepEqual(new Set(told.slice(0, Math.min(slots, LONGEST_SPREAD_SLOTS))), new Set([1_250_000]));
    assert.deepEqual(new Set(told.slice(Math.min(slots, LONGEST_SPREAD_SLOTS))), new Set([0]));
    assert.equal(spread.size, 0);
  }
});

test('what no row could hold exactly is refused, and whatever was added is taken away to the last octet', () => {
  const spread = new SpreadFlows();
  const result = new Slots();
  const slot = () => {
    result.slots.push([]);
    if (result.slots.length > 1) spread.nextSlot(result.add);
  };
  const add = (packets: number, bytes: number, milliseconds: number) =>
    spread.add(1, 0, 0, 0, 1, packets, bytes, 1, milliseconds, result.add);
  slot();
  assert.equal(add(1200, 1_200_000, 30_000), 'whole');
  for (const [packets, bytes] of [
    [2 ** 64, 2 ** 64],
    [1, 2 ** 50],
    [Number.MAX_SAFE_INTEGER, 1],
  ] as const) {
    assert.equal(add(packets, bytes, 1000), 'refused');
  }
  let added = 0;
  while (add(2 ** 40 + 1, 2 ** 42 + 3, 1000) === 'whole') added++;
  assert.ok(added === 1 || added === 2, `${added}`);
  for (let i = 0; i < 121; i++) slot();
  const sum = (column: number) => result.slots.reduce((total, sums) => total + (sums[1]?.[column] ?? 0), 0);
  assert.deepEqual([sum(0), sum(1)], [1200 + added * (2 ** 40 + 1), 1_200_000 + added * (2 ** 42 + 3)]);
  assert.equal(spread.size, 0);
});
