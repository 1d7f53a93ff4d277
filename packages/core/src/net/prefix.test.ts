import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Address,
  comparePrefixes,
  familyBits,
  type Prefix,
  prefixContains,
  prefixContainsAddress,
  prefixesEqual,
  prefixesOverlap,
  prefixOf,
} from './prefix.ts';
import { formatPrefix, parsePrefix, prefixFromTrusted } from './prefix-text.ts';

/** Addresses of few bits, so that prefixes often nest. */
const address: fc.Arbitrary<Address> = fc.oneof(
  fc.bigInt(0n, 15n).map((value): Address => ({ family: 4, value: 0x0a000000n | value })),
  fc.bigInt(0n, (1n << 32n) - 1n).map((value): Address => ({ family: 4, value })),
  fc.bigInt(0n, 15n).map((value): Address => ({ family: 6, value: (0x20010db8n << 96n) | (value << 62n) })),
);
const prefix: fc.Arbitrary<Prefix> = fc
  .tuple(address, fc.nat(128))
  .map(([of, length]) => prefixOf(of, length % (familyBits(of.family) + 1)));

test('what is written is read back as the same prefix, and is canonical', () => {
  fc.assert(
    fc.property(prefix, (given) => {
      const read = parsePrefix(formatPrefix(given));
      if (given.family === 6 && given.length >= 96 && given.value >> 32n === 0xffffn) return;
      assert.deepEqual(read, { ok: true, prefix: given });
    }),
    { numRuns: 2000 },
  );
});

test('a prefix holds the addresses whose first bits are its own', () => {
  fc.assert(
    fc.property(prefix, address, (outer, of) => {
      const bits = (value: bigint) => value.toString(2).padStart(familyBits(outer.family), '0').slice(0, outer.length);
      const expected = outer.family === of.family && bits(outer.value) === bits(of.value);
      assert.equal(prefixContainsAddress(outer, of), expected);
      assert.equal(prefixContains(outer, prefixOf(of)), expected);
    }),
    { numRuns: 2000 },
  );
});

test('two prefixes overlap exactly when one contains the other, and the wider one comes first', () => {
  fc.assert(
    fc.property(prefix, prefix, (a, b) => {
      assert.equal(prefixesOverlap(a, b), prefixContains(a, b) || prefixContains(b, a));
      assert.equal(prefixesOverlap(a, b), prefixesOverlap(b, a));
      if (prefixContains(a, b)) assert.ok(comparePrefixes(a, b) <= 0);
      assert.equal(Math.sign(comparePrefixes(a, b)), -Math.sign(comparePrefixes(b, a)) || 0);
    }),
    { numRuns: 2000 },
  );
});

test('two prefixes are equal when family, length and bits are', () => {
  const given: Prefix = { family: 4, value: 0n, length: 8 };
  assert.equal(prefixesEqual(given, { ...given }), true);
  assert.equal(prefixesEqual(given, { ...given, family: 6 }), false);
  assert.equal(prefixesEqual(given, { ...given, length: 9 }), false);
  assert.equal(prefixesEqual(given, { ...given, value: 1n << 24n }), false);
});

for (const [text, expected] of [
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7/32', '203.0.113.7'],
  ['203.0.113.0/24', '203.0.113.0/24'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:DB8:0::/48', '2001:db8::/48'],
  ['2001:db8::7/128', '2001:db8::7'],
  ['::/0', '::/0'],
] as const) {
  test(`${text} is read and written as ${expected}`, () => {
    const read = parsePrefix(text);
    assert.ok(read.ok);
    assert.equal(formatPrefix(read.prefix), expected);
  });
}

for (const [text, code, said] of [
  ['203.0.113.7/24', 'host_bits_set', 'did you mean 203.0.113.0/24 or 203.0.113.7/32?'],
  ['2001:db8::7/64', 'host_bits_set', 'did you mean 2001:db8::/64 or 2001:db8::7/128?'],
  ['203.0.113.0/33', 'invalid_prefix_length', 'from 0 to 32'],
  ['203.0.113.0/', 'invalid_prefix_length', 'from 0 to 32'],
  ['203.0.113.0/024', 'invalid_prefix_length', 'from 0 to 32'],
  ['203.0.113.0/24/24', 'invalid_prefix_length', 'from 0 to 32'],
  ['203.0.113.0/255.255.255.0', 'invalid_prefix_length', 'from 0 to 32'],
  ['2001:db8::/129', 'invalid_prefix_length', 'from 0 to 128'],
  ['2001:db8::/-1', 'invalid_prefix_length', 'from 0 to 128'],
  ['/24', 'invalid_address', 'IPv4 or IPv6 address'],
  ['::ffff:203.0.113.0/120', 'ipv4_mapped', 'did you mean 203.0.113.0/24?'],
  ['::ffff:0:0/96', 'ipv4_mapped', 'did you mean 0.0.0.0/0?'],
  ['::ffff:203.0.113.7/64', 'ipv4_mapped', 'did you mean 203.0.113.7?'],
  ['fe80::%1/64', 'zone_id', 'zone id'],
] as const) {
  test(`${text} is refused as ${code}`, () => {
    const read = parsePrefix(text);
    assert.ok(!read.ok);
    assert.equal(read.code, code);
    assert.ok(read.sentence.includes(said), read.sentence);
  });
}

test('a text of our own that is no prefix is a bug, not a value', () => {
  assert.throws(() => prefixFromTrusted('203.0.113.7/24'), /host bits/);
});
