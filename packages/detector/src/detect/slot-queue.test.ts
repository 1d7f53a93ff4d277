import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SlotQueue } from './slot-queue.ts';
import { MONDAY, slotReport } from './testing/rig.ts';

interface Judged {
  readonly slot: number;
  readonly reports: number;
  readonly atMs: number;
}

function queueOf() {
  const judged: Judged[] = [];
  const apart: number[] = [];
  /** What each report was counted as, and what its collector called it. */
  const numbered: { readonly told: number; readonly slot: number }[] = [];
  let nowMs = MONDAY;
  const queue = new SlotQueue(
    (slot, reports) => {
      judged.push({ slot: slot - MONDAY / 250, reports: reports.length, atMs: nowMs });
      for (const { slot, report } of reports) numbered.push({ told: report.slotMs / 250, slot });
    },
    (_collector, milliseconds) => apart.push(milliseconds),
  );
  return {
    judged,
    apart,
    numbered,
    stepped: (slots: number) => queue.stepped(slots),
    /** `slot` counts from Monday on the collector's clock. */
    tell(collector: string, slot: number, atMs: number) {
      nowMs = atMs;
      queue.take(slotReport(collector, slot, MONDAY + slot * 250, []), nowMs);
      return queue.run(nowMs);
    },
  };
}

const endOf = (slot: number) => MONDAY + (slot + 1) * 250;

test('each slot is judged once, in order, with what all collectors told of it', () => {
  const { judged, tell } = queueOf();
  for (const collector of ['a', 'b', 'c']) tell(collector, 0, endOf(0) + 5);
  for (let slot = 1; slot < 50; slot++) {
    tell('c', slot, endOf(slot) + 10);
    tell('a', slot, endOf(slot) + 40);
    tell('b', slot, endOf(slot) + 140);
  }
  assert.deepEqual(
    judged.map(({ slot }) => slot),
    Array.from({ length: 50 }, (_, slot) => slot),
  );
  assert.ok(judged.slice(2).every(({ reports, slot, atMs }) => reports === 3 && atMs === endOf(slot) + 140));
});

test('a collector that has gone is waited for two seconds, a slot of it 150 ms', () => {
  const { judged, tell } = queueOf();
  for (let slot = 0; slot < 10; slot++) for (const collector of ['a', 'b']) tell(collector, slot, endOf(slot) + 10);
  const count = judged.length;
  assert.equal(tell('a', 10, endOf(10) + 10), 150);
  assert.equal(judged.length, count);
  for (let slot = 11; slot < 30; slot++) tell('a', slot, endOf(slot) + 10);
  assert.equal(judged.at(-1)?.slot, 29);
});

test('what comes late is counted with the next slot, and makes none of its own', () => {
  const { judged, tell } = queueOf();
  for (let slot = 0; slot < 10; slot++) for (const collector of ['a', 'b']) tell(collector, slot, endOf(slot) + 10);
  tell('a', 10, endOf(10) + 10);
  tell('a', 11, endOf(11) + 10);
  tell('b', 10, endOf(11) + 20);
  tell('b', 11, endOf(11) + 30);
  assert.deepEqual(
    judged.slice(-2).map(({ slot, reports }) => [slot, reports]),
    [
      [10, 1],
      [11, 3],
    ],
  );
});

test('a clock that is set forward or back by an hour costs two seconds at most', () => {
  for (const step of [14_400, -14_400]) {
    const { judged, apart, tell } = queueOf();
    for (let slot = 0; slot < 20; slot++) tell('a', slot, endOf(slot) + 10);
    for (let slot = 20; slot < 100; slot++) tell('a', slot + step, endOf(slot) + 10);
    assert.ok(judged.length >= 91, `${step}: ${judged.length} judged`);
    assert.equal(apart.length, 1);
    assert.ok(judged.every(({ slot }, index) => index === 0 || slot > (judged[index - 1]?.slot ?? 0)));
  }
});

test('a clock that is set here and at a collector stops nothing, and slots are numbered by it', () => {
  const { judged, tell, stepped } = queueOf();
  for (let slot = 20_000; slot < 20_020; slot++) tell('a', slot, endOf(slot) + 10);
  stepped(-15_000);
  for (let slot = 5_020; slot < 5_040; slot++) tell('a', slot, endOf(slot) + 10);
  assert.deepEqual(
    judged.map(({ slot }) => slot),
    Array.from({ length: 40 }, (_, index) => (index < 20 ? 20_000 : 5_000) + index),
  );
});

test('slots of a process that stood still are judged each once, in order, and never as those of now', () => {
  const { judged, tell } = queueOf();
  for (let slot = 0; slot < 20; slot++) for (const collector of ['a', 'b']) tell(collector, slot, endOf(slot) + 10);
  // 28 s; one worker is a little behind the other.
  const wentOn = endOf(131);
  for (const [collector, lateMs] of [
    ['a', 5],
    ['b', 60],
  ] as const)
    for (let slot = 20; slot < 132; slot++) tell(collector, slot, wentOn + lateMs);
  for (let slot = 132; slot < 160; slot++) for (const collector of ['a', 'b']) tell(collector, slot, endOf(slot) + 90);
  assert.deepEqual(
    judged.map(({ slot, reports }) => [slot, reports]),
    // The very first collector is not known to be one of two.
    Array.from({ length: 160 }, (_, slot) => [slot, slot === 0 ? 1 : slot === 1 ? 3 : 2]),
  );
});

test('slots of one thread that stood still while others did not are late, and never those of now', () => {
  const { numbered, tell } = queueOf();
  for (let slot = 0; slot < 60; slot++) {
    tell('a', slot, endOf(slot) + 10);
    if (slot < 20) tell('b', slot, endOf(slot) + 10);
  }
  // Ten seconds, told within two and a half.
  for (let slot = 20; slot < 70; slot++) {
    if (slot % 5 === 0) tell('a', 60 + (slot - 20) / 5, endOf(60 + (slot - 20) / 5) + 10);
    tell('b', slot, endOf(59) + 30 + (slot - 20) * 50);
  }
  assert.deepEqual(
    numbered.filter(({ told, slot }) => told !== slot),
    [],
  );
});
