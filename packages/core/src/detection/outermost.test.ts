import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { prefixContains, prefixOf } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { addressValue, maskOf, OutermostPrefixes, wordsOf } from './outermost.ts';

function lengthAt(prefixes: OutermostPrefixes, family: 4 | 6, value: bigint): number {
  const [a = 0, b = 0, c = 0, d = 0] = wordsOf(family, value);
  return prefixes.lengthAt(family, a, b, c, d);
}

test('an address is of the widest prefix that has it, as a walk over all of them finds', () => {
  const family = fc.constantFrom(4, 6) as fc.Arbitrary<4 | 6>;
  // Few values, so that they nest and touch.
  const valueIn = (of: 4 | 6) =>
    fc.bigInt({ min: 0n, max: 63n }).map((low) => (of === 4 ? 0xcb007100n + low : (0x20010db8n << 96n) + (low << 60n)));
  const prefix = family.chain((of) =>
    fc
      .tuple(valueIn(of), of === 4 ? fc.integer({ min: 22, max: 32 }) : fc.integer({ min: 50, max: 128 }))
      .map(([value, length]) => prefixOf({ family: of, value }, length)),
  );
  const address = family.chain((of) => valueIn(of).map((value) => ({ family: of, value })));
  fc.assert(
    fc.property(fc.array(prefix, { maxLength: 15 }), address, (prefixes, { family, value }) => {
      const index = new OutermostPrefixes(prefixes.map(formatPrefix));
      const containing = prefixes.filter((each) => prefixContains(each, prefixOf({ family, value })));
      const expected = containing.length === 0 ? -1 : Math.min(...containing.map(({ length }) => length));
      assert.equal(lengthAt(index, family, value), expected);
    }),
    { numRuns: 500 },
  );
});

test('an aggregate is a /24 or a /64, or the protected prefix where that is longer', () => {
  const prefixes = new OutermostPrefixes([
    '203.0.112.0/22',
    '198.51.100.16/28',
    '192.0.2.7',
    '2001:db8::/32',
    '2001:db9::8/125',
  ]);
  const at = (value: bigint, family: 4 | 6) => {
    const [a = 0, b = 0, c = 0, d = 0] = wordsOf(family, value);
    return prefixes.aggregateLengthAt(family, a, b, c, d);
  };
  assert.equal(at(0xcb007107n, 4), 24);
  assert.equal(at(0xc6336411n, 4), 28);
  assert.equal(at(0xc0000207n, 4), 32);
  assert.equal(at(0xc0000208n, 4), -1);
  assert.equal(at((0x20010db8n << 96n) + 5n, 6), 64);
  assert.equal(at((0x20010db9n << 96n) + 9n, 6), 125);
});

test('words and values are the same address', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), (value) => {
      assert.equal(addressValue(6, wordsOf(6, value)), value);
      assert.equal(addressValue(4, wordsOf(4, value & 0xffffffffn)), value & 0xffffffffn);
    }),
  );
  assert.deepEqual(
    [0, 1, 24, 31, 32, 40, -3].map(maskOf),
    [0, 0x80000000, 0xffffff00, 0xfffffffe, 0xffffffff, 0xffffffff, 0],
  );
});
