import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChainCounter } from '../drivers/nft/port.ts';
import { createTally, type Tally } from './tally.ts';

const now = new Date('2026-01-01T00:00:00Z');
const counters = (...packets: number[]): ChainCounter[] =>
  packets.map((count) => ({ packets: count, bytes: count * 100 }));

function note(tally: Tally, chain: string, values: ChainCounter[], owners: string[][]): void {
  const reading = tally.reading();
  reading.note(chain, values, () => owners, now);
  reading.end();
}
const packetsIn = (tally: Tally): Record<string, number> =>
  Object.fromEntries(tally.take().map(({ uuid, packets }) => [uuid, packets]));

test('only what was added since the last reading counts', () => {
  const tally = createTally();
  note(tally, 'c', counters(5, 1), [['a'], ['b']]);
  assert.deepEqual(packetsIn(tally), { a: 5, b: 1 });
  note(tally, 'c', counters(8, 1), [['a'], ['b']]);
  assert.deepEqual(packetsIn(tally), { a: 3 });
  assert.deepEqual(packetsIn(tally), {});
});

test('a rule in several chains gets the sum, rules that share a counter each get it whole', () => {
  const tally = createTally();
  note(tally, 'c', counters(5), [['a']]);
  note(tally, 'd', counters(7), [['a', 'b']]);
  assert.deepEqual(tally.take(), [
    { uuid: 'a', packets: 12, bytes: 1200, last_hit_at: now.toISOString(), shared_by: 2 },
    { uuid: 'b', packets: 7, bytes: 700, last_hit_at: now.toISOString(), shared_by: 2 },
  ]);
});

test('a flushed chain begins at nothing', () => {
  const tally = createTally();
  note(tally, 'c', counters(5), [['a']]);
  tally.flushed(['c']);
  note(tally, 'c', counters(2), [['a']]);
  assert.deepEqual(packetsIn(tally), { a: 7 });
  tally.flushed('all');
  note(tally, 'c', counters(2), [['a']]);
  assert.deepEqual(packetsIn(tally), { a: 2 });
});

test('counters that were read before a flush and arrive after it are not counted again', () => {
  for (const flushed of [['c'], 'all'] as const) {
    const tally = createTally();
    const long = tally.reading();
    note(tally, 'c', counters(5), [['a']]);
    tally.flushed(flushed);
    long.note('c', counters(5), () => [['a']], now);
    long.end();
    note(tally, 'c', counters(1), [['a']]);
    assert.deepEqual(packetsIn(tally), { a: 6 });
  }
});

test('a chain of another shape than its owners is left alone', () => {
  const tally = createTally();
  note(tally, 'c', counters(5, 5), [['a']]);
  assert.deepEqual(packetsIn(tally), {});
});

test('after an adoption only what comes on top counts', () => {
  const tally = createTally();
  tally.rebase(new Map([['c', counters(100)]]));
  note(tally, 'c', counters(103), [['a']]);
  assert.deepEqual(packetsIn(tally), { a: 3 });
});
