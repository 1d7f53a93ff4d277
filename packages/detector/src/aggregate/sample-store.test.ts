import assert from 'node:assert/strict';
import test from 'node:test';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { MOST_OF_ONE, OCTETS_OF_SAMPLE, SAMPLE_AGE_MILLISECONDS, SampleStore } from './sample-store.ts';

const start = 1_000_000_000;
const anywhere: Prefix = prefixFromTrusted('0.0.0.0/0');

function packet(mark: number, length = 100) {
  const header = new Uint8Array(300).fill(mark & 255);
  return { header, headerStart: 10, headerLength: 140, bytes: length, inputInterface: mark };
}

/** The same numbers every time: a linear congruential generator (Numerical Recipes). */
function numbers(): () => number {
  let state = 42;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('gives back what was offered: the octets, when, what it stands for and where it came in', () => {
  const store = new SampleStore(1 << 20, numbers());
  store.offer(0xcb007107, 0, 0, 0, 4, packet(3, 1234), 16, 5, start, false);
  store.offer(0x20010db8, 0, 0, 7, 6, packet(4), 1, 6, start + 1, false);
  const { held, samples } = store.collect(prefixFromTrusted('203.0.113.0/24'), 0, start + 1, 10);
  assert.equal(held, 1);
  assert.deepEqual(samples, [
    { atMs: start, scale: 16, exporter: 5, inputInterface: 3, length: 1234, header: new Uint8Array(128).fill(3) },
  ]);
  assert.equal(store.collect(prefixFromTrusted('2001:db8::/64'), 0, start + 1, 10).held, 1);
  assert.equal(store.collect(prefixFromTrusted('203.0.113.6'), 0, start + 1, 10).held, 0);
  assert.equal(store.collect(anywhere, start + 1, start + 1, 10).held, 0);
});

test('one destination has at most 2 000, of all of its last minutes', () => {
  const store = new SampleStore(16 << 20, numbers());
  let nowMs = start;
  for (let slot = 0; slot < 1200; slot++) {
    for (let i = 0; i < 40; i++) store.offer(1, 0, 0, 0, 4, packet(slot), 1, 0, nowMs + i, false);
    nowMs += 250;
    store.endSlot(nowMs);
  }
  const { held, samples } = store.collect(anywhere, 0, nowMs, 5000);
  assert.equal(held, MOST_OF_ONE);
  const ages = samples.map(({ atMs }) => nowMs - atMs);
  assert.ok(ages.filter((age) => age < 60_000).length > 300, 'the last minute is well represented');
  assert.ok(ages.filter((age) => age > 240_000).length > 300, 'and so is what was four minutes ago');
  assert.equal(store.collect(anywhere, 0, nowMs, 50).samples.length, 50);
});

test('holds no more in all than it was given, and what it holds then is of the last minutes', () => {
  const octets = 2 << 20;
  const store = new SampleStore(octets, numbers());
  let nowMs = start;
  for (let slot = 0; slot < 3000; slot++) {
    for (let i = 0; i < 100; i++) store.offer(slot * 100 + i, 0, 0, 0, 4, packet(i), 1, 0, nowMs, false);
    nowMs += 250;
    store.endSlot(nowMs);
  }
  assert.equal(store.held, Math.floor(octets / OCTETS_OF_SAMPLE / 4096) * 4096);
  const ages = store.collect(anywhere, 0, nowMs, 100_000).samples.map(({ atMs }) => nowMs - atMs);
  const [middle = 0] = ages.sort((one, other) => one - other).slice(ages.length / 2);
  assert.ok(middle > 20_000 && middle < 240_000, `half are younger than ${middle} ms`);
});

test('a scan does not drive out what is held of others, and a hot destination is always taken', () => {
  const store = new SampleStore(2 << 20, numbers());
  for (let i = 0; i < 1000; i++) store.offer(7, 0, 0, 0, 4, packet(7), 1, 0, start, false);
  let nowMs = start + 1000;
  for (let slot = 0; slot < 40; slot++) {
    for (let i = 0; i < 10_000; i++) store.offer(slot * 10_000 + i, 9, 9, 9, 6, packet(i), 1, 0, nowMs, false);
    if (slot === 20) for (let i = 0; i < 100; i++) store.offer(8, 0, 0, 0, 4, packet(8), 1, 0, nowMs, true);
    nowMs += 250;
    store.endSlot(nowMs);
  }
  assert.ok(store.collect(prefixFromTrusted('0.0.0.7'), 0, nowMs, 1).held > 500);
  assert.ok(store.collect(prefixFromTrusted('0.0.0.8'), 0, nowMs, 1).held > 90);
});

test('what is older than fifteen minutes is not given, and its room is free after fifteen more', () => {
  const store = new SampleStore(1 << 20, numbers());
  for (let i = 0; i < 1000; i++) store.offer(i % 7, 0, 0, 0, 4, packet(i), 1, 0, start, false);
  let nowMs = start + SAMPLE_AGE_MILLISECONDS + 1;
  assert.equal(store.collect(anywhere, 0, nowMs, 10).held, 0);
  for (let slot = 0; slot < SAMPLE_AGE_MILLISECONDS / 250; slot++) {
    nowMs += 250;
    store.endSlot(nowMs);
  }
  assert.equal(store.held, 0);
  store.offer(9, 0, 0, 0, 4, packet(1), 1, 0, nowMs, false);
  assert.equal(store.collect(anywhere, 0, nowMs, 10).held, 1);
});

test('stays whole while packets of many destinations come and go', () => {
  const random = numbers();
  const store = new SampleStore(1 << 20, random);
  let nowMs = start;
  for (let i = 0; i < 60_000; i++) {
    const destination = Math.floor(random() * random() * 3000);
    store.offer(destination, 0, 0, 0, 4, packet(destination), 1, destination, nowMs, false);
    if (i % 20 === 0) {
      nowMs += 250;
      store.endSlot(nowMs);
    }
  }
  const { held, samples } = store.collect(anywhere, 0, nowMs, 100_000);
  assert.equal(samples.length, held);
  assert.ok(held > 3_000 && held <= store.held);
  for (const { exporter, inputInterface, header } of samples) {
    assert.equal(inputInterface, exporter);
    assert.equal(header[0], exporter & 255);
  }
});
