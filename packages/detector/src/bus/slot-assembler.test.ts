import assert from 'node:assert/strict';
import test from 'node:test';
import type { SlotReport } from './port.ts';
import { SlotAssembler } from './slot-assembler.ts';

function part(partition: number, packets: number, sequence = 1) {
  const report: SlotReport = {
    type: 'slot',
    collector: 'a',
    sequence,
    slotMs: 250,
    count: 1,
    families: Uint8Array.of(4),
    addresses: Uint32Array.of(partition, 0, 0, 0),
    vectors: Uint8Array.of(1),
    packets: Float64Array.of(packets),
    bytes: Float64Array.of(0),
    samples: Float64Array.of(1),
    profiles: [],
  };
  return { partition, report };
}
const end = (partitions: readonly number[], sequence = 1) => ({ collector: 'a', sequence, slotMs: 250, partitions });

function assembler(ours: readonly number[]) {
  const delivered: SlotReport[] = [];
  return {
    delivered,
    slots: new SlotAssembler(
      (each) => ours.includes(each),
      (report) => delivered.push(report),
    ),
  };
}

test('a slot is handed over once, when all of its parts that are ours are there, in whatever order', () => {
  const { delivered, slots } = assembler([1, 2]);
  slots.part(part(2, 5), 0);
  slots.end(end([1, 2, 3]), 0);
  assert.equal(delivered.length, 0);
  slots.part(part(1, 7), 10);
  assert.deepEqual(
    delivered.map(({ count, packets }) => [count, [...packets].sort()]),
    [[2, [5, 7]]],
  );
  assert.equal(slots.run(20), undefined);
});

test('a slot without anything of ours is told as empty: that there was nothing is known by it', () => {
  const { delivered, slots } = assembler([1]);
  slots.end(end([]), 0);
  slots.end(end([3], 2), 0);
  assert.deepEqual(
    delivered.map(({ sequence, count }) => [sequence, count]),
    [
      [1, 0],
      [2, 0],
    ],
  );
});

test('what never comes is not waited for: a part 100 ms, an end a second', () => {
  const { delivered, slots } = assembler([1, 2]);
  slots.part(part(1, 5), 0);
  slots.end(end([1, 2]), 50);
  assert.equal(slots.run(100), 50);
  slots.run(150);
  assert.deepEqual(
    delivered.map(({ count }) => count),
    [1],
  );
  slots.part(part(1, 6, 2), 200);
  assert.equal(slots.run(300), 900);
  slots.run(1_200);
  assert.deepEqual(
    delivered.map(({ packets }) => packets[0]),
    [5, 6],
  );
});
