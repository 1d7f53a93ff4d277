import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress } from '../net/address.ts';
import { formatPrefix, prefixFromTrusted } from '../net/prefix-text.ts';
import {
  allocate,
  capacityOf,
  endNumbers,
  type InnerPools,
  innerAddresses,
  numberAfter,
  stretchesFrom,
  type Taken,
  usualPools,
} from './allocation.ts';

const small: InnerPools = { ipv4: prefixFromTrusted('10.0.0.0/28'), ipv6: prefixFromTrusted('fd00::/120') };
const nothing: Taken = { numbers: new Set(), pairs: new Set() };
const numbers = (pools: InnerPools, from: number, count: number, taken: Taken = nothing) =>
  allocate(pools, stretchesFrom(pools, from, capacityOf(pools)), count, taken).map(({ number }) => number);

test('an end gets a number that is never 0, a /31 and a /127 of the pools, the router at the even addresses', () => {
  const [first] = allocate(usualPools, stretchesFrom(usualPools, 1, 10), 1, nothing);
  assert.ok(first);
  assert.equal(first.number, 1);
  assert.equal(formatPrefix(first.innerIpv4), '10.48.0.2/31');
  assert.equal(formatPrefix(first.innerIpv6), 'fd6c:6576:6565::2/127');
  const { router, customer } = innerAddresses(first.innerIpv4);
  assert.deepEqual([formatAddress(router), formatAddress(customer)], ['10.48.0.2', '10.48.0.3']);
});

test('the capacity is what the smaller pool holds, and never more than there are VNIs', () => {
  assert.equal(capacityOf(usualPools), 262_143);
  assert.equal(capacityOf(small), 7);
  assert.equal(capacityOf({ ...small, ipv6: prefixFromTrusted('fd00::/126') }), 1);
  assert.equal(capacityOf({ ipv4: prefixFromTrusted('0.0.0.0/0'), ipv6: prefixFromTrusted('fd00::/8') }), 2 ** 24 - 1);
  const last = endNumbers(small, capacityOf(small));
  assert.equal(formatPrefix(last.innerIpv4), '10.0.0.14/31');
});

test('numbers go round: a free one comes up after all behind it', () => {
  assert.deepEqual(numbers(small, 6, 4), [6, 7, 1, 2]);
  assert.deepEqual(numbers(small, 3, 100), [3, 4, 5, 6, 7, 1, 2]);
  assert.equal(numberAfter(small, 7), 1);
  assert.equal(numberAfter(small, 3), 4);
});

test('a place beyond the pools, left by larger ones, begins at their start', () => {
  assert.deepEqual(numbers(small, 9_000, 2), [1, 2]);
  assert.deepEqual(numbers(small, 0, 2), [1, 2]);
});

test('what is taken is passed over, by number and by address', () => {
  assert.deepEqual(numbers(small, 1, 3, { numbers: new Set([1, 3]), pairs: new Set() }), [2, 4, 5]);
  const pairs = new Set(['10.0.0.4/31', 'fd00::8/127']);
  assert.deepEqual(numbers(small, 1, 3, { numbers: new Set(), pairs }), [1, 3, 5]);
});

test('nothing is given twice, and everything is given in the end', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 12 }), fc.nat({ max: 20 }), (wants, start) => {
      const given = new Set<number>();
      let from = start;
      for (const want of wants) {
        const found = numbers(small, from, want, { numbers: given, pairs: new Set() });
        assert.equal(found.length, Math.min(want, capacityOf(small) - given.size));
        for (const number of found) {
          assert.ok(!given.has(number));
          given.add(number);
          from = numberAfter(small, number);
        }
      }
    }),
  );
});
