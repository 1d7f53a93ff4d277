import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { comparePrefixes, type Family, familyBits, type Prefix, prefixContains, prefixOf } from './prefix.ts';
import { PrefixIndex } from './prefix-index.ts';
import { formatPrefix, prefixFromTrusted } from './prefix-text.ts';

/** Few distinct bits at places of every word, and lengths at words' ends, so that prefixes nest, fork and meet again. */
const length = fc.oneof(fc.nat(128), fc.constantFrom(0, 32, 64, 96));
const prefix: fc.Arbitrary<Prefix> = fc
  .tuple(fc.constantFrom<Family>(4, 6), fc.bigInt(0n, 255n), length, fc.constantFrom(0n, 24n, 28n, 60n, 92n, 120n))
  .map(([family, value, length, shift]) => {
    const bits = familyBits(family);
    return prefixOf({ family, value: value << (shift % BigInt(bits - 7)) }, length % (bits + 1));
  });
const step = fc.tuple(fc.constantFrom('set', 'set', 'delete'), prefix, fc.nat());

test('after any sets and deletes it answers what a plain list of the prefixes answers', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(prefix, { minLength: 5, maxLength: 5 }), (steps, asked) => {
      const index = new PrefixIndex<number>();
      const model = new Map<string, { prefix: Prefix; value: number }>();
      for (const [kind, of, value] of steps) {
        if (kind === 'set') {
          index.set(of, value);
          model.set(formatPrefix(of), { prefix: of, value });
        } else {
          assert.equal(index.delete(of), model.delete(formatPrefix(of)));
        }
        assert.equal(index.size, model.size);
      }
      const all = [...model.values()].sort((a, b) => comparePrefixes(a.prefix, b.prefix));
      assert.deepEqual(index.entries(), all);
      for (const of of [...asked, ...all.map((entry) => entry.prefix)]) {
        assert.deepEqual(
          index.inside(of),
          all.filter((entry) => prefixContains(of, entry.prefix)),
        );
        const covering = all.filter((entry) => prefixContains(entry.prefix, of));
        assert.deepEqual(index.covering(of), covering);
        assert.deepEqual(index.longestMatch(of), covering.at(-1));
        assert.equal(index.get(of), model.get(formatPrefix(of))?.value);
        assert.equal(index.has(of), model.has(formatPrefix(of)));
      }
    }),
    { numRuns: 1000 },
  );
});

test('a fork at the end of a word can become an entry itself', () => {
  for (const length of [32, 64, 96]) {
    const index = new PrefixIndex<number>();
    const fork = prefixOf({ family: 6, value: 0x20010db8n << 96n }, length);
    const half = 1n << BigInt(127 - length);
    index.set({ family: 6, value: fork.value | half | 5n, length: 128 }, 1);
    index.set({ family: 6, value: fork.value | 5n, length: 128 }, 2);
    index.set(fork, 3);
    assert.equal(index.get(fork), 3);
    assert.equal(index.delete(fork), true);
    assert.equal(index.size, 2);
  }
});

test('the default routes of both families are entries like others', () => {
  const index = new PrefixIndex<string>();
  index.set(prefixFromTrusted('0.0.0.0/0'), 'four');
  index.set(prefixFromTrusted('::/0'), 'six');
  assert.equal(index.longestMatch(prefixFromTrusted('203.0.113.7'))?.value, 'four');
  assert.equal(index.longestMatch(prefixFromTrusted('2001:db8::'))?.value, 'six');
});

test('the same host part in many subnets costs no more than different ones', () => {
  const once = (value: (index: bigint) => bigint) => {
    const index = new PrefixIndex<number>();
    const start = performance.now();
    for (let count = 0; count < 20_000; count += 1) {
      index.set({ family: 6, value: value(BigInt(count)), length: 128 }, count);
    }
    return performance.now() - start;
  };
  const different = (index: bigint) => (0x20010db8n << 96n) | (index << 64n) | index;
  const timed = (value: (index: bigint) => bigint) => Math.min(once(value), once(value), once(value));
  const ratio = timed((index) => (0x20010db8n << 96n) | (index << 64n) | 1n) / timed(different);
  // A structure that hashes the low half alone takes some hundred times as long here.
  assert.ok(ratio < 20, `${ratio.toFixed(1)} times as long`);
});
