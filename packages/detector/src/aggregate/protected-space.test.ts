import assert from 'node:assert/strict';
import test from 'node:test';
import { type Family, familyBits, type Prefix, prefixContainsAddress, prefixOf } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import fc from 'fast-check';
import { wordsOf } from './address-words.ts';
import { ProtectedSpace } from './protected-space.ts';

/** Addresses close to each other, so that prefixes meet. */
function prefixes(family: Family): fc.Arbitrary<Prefix> {
  const bits = familyBits(family);
  const base = family === 4 ? 0xc6330000n : 0x20010db8_0000_0000_0000_0000_0000_0000n;
  const spread = fc.bigInt({ min: 0n, max: (1n << 18n) - 1n });
  const value = family === 4 ? spread : fc.tuple(spread, fc.nat(110)).map(([low, shift]) => low << BigInt(shift % 80));
  return fc
    .tuple(value, fc.integer({ min: family === 4 ? 0 : 20, max: bits }))
    .map(([low, length]) => prefixOf({ family, value: base ^ low }, length));
}

for (const family of [4, 6] as const) {
  test(`IPv${family}: has exactly the addresses of its prefixes, nested ones and the ends of each`, () => {
    fc.assert(
      fc.property(fc.array(prefixes(family), { maxLength: 12 }), fc.array(prefixes(family)), (chosen, others) => {
        const space = new ProtectedSpace(chosen.map(formatPrefix));
        const last = (1n << BigInt(familyBits(family))) - 1n;
        const ends = chosen.flatMap(({ value, length }) => {
          const end = value + (1n << BigInt(familyBits(family) - length)) - 1n;
          return [value - 1n, value, end, end + 1n].filter((each) => each >= 0n && each <= last);
        });
        for (const value of [...ends, ...others.map((other) => other.value), 0n, last]) {
          const words = wordsOf({ family, value });
          const has = family === 4 ? space.hasIpv4(words[0]) : space.hasIpv6(...words);
          const expected = chosen.some((prefix) => prefixContainsAddress(prefix, { family, value }));
          assert.equal(has, expected, `${value.toString(16)} in ${chosen.map(formatPrefix).join(' ')}`);
        }
      }),
    );
  });
}

test('a whole family and single addresses are prefixes like others', () => {
  const all = new ProtectedSpace(['0.0.0.0/0', '::/0']);
  assert.ok(all.hasIpv4(0) && all.hasIpv4(0xffffffff) && all.hasIpv6(0, 0, 0, 0) && all.hasIpv6(0xffffffff, 1, 2, 3));
  const one = new ProtectedSpace(['203.0.113.7', '2001:db8::7']);
  assert.deepEqual(
    [6, 7, 8].map((last) => one.hasIpv4(0xcb007100 + last)),
    [false, true, false],
  );
  assert.deepEqual(
    [6, 7, 8].map((last) => one.hasIpv6(0x20010db8, 0, 0, last)),
    [false, true, false],
  );
  const none = new ProtectedSpace([]);
  assert.ok(!none.hasIpv4(0xcb007107) && !none.hasIpv6(0x20010db8, 0, 0, 7));
});
