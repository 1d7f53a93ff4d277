import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AddressRange, type Family, familyBits } from './prefix.ts';
import { prefixesOfRange, prefixOfRange, rangeContainsAddress, rangeOfPrefix } from './range.ts';

const range: fc.Arbitrary<AddressRange> = fc.constantFrom<Family>(4, 6).chain((family) => {
  const last = (1n << BigInt(familyBits(family))) - 1n;
  const near = fc.bigInt(0n, 300n);
  const end = fc.oneof(
    near,
    near.map((value) => last - value),
    fc.bigInt(0n, last),
  );
  return fc.tuple(end, end).map(([a, b]): AddressRange => ({ family, start: a < b ? a : b, end: a < b ? b : a }));
});

test('the prefixes of a range follow each other without gap or overlap and hold exactly the range', () => {
  fc.assert(
    fc.property(range, (given) => {
      let next = given.start;
      for (const prefix of prefixesOfRange(given)) {
        const held = rangeOfPrefix(prefix);
        assert.equal(held.start, next);
        next = held.end + 1n;
      }
      assert.equal(next, given.end + 1n);
    }),
    { numRuns: 1000 },
  );
});

test('no two neighbouring prefixes of a range could be one', () => {
  fc.assert(
    fc.property(range, (given) => {
      const prefixes = prefixesOfRange(given);
      assert.ok(prefixes.length <= 2 * familyBits(given.family) - 2 || given.start === given.end);
      for (const [index, prefix] of prefixes.entries()) {
        const before = prefixes[index - 1];
        if (before === undefined || before.length !== prefix.length) continue;
        const joined = 2n ** BigInt(familyBits(given.family) - before.length + 1);
        assert.notEqual(before.value % joined, 0n);
      }
    }),
    { numRuns: 1000 },
  );
});

test('the whole of a family is one prefix of length 0', () => {
  const all = { family: 6, start: 0n, end: (1n << 128n) - 1n } as const;
  assert.deepEqual(prefixOfRange(all), { family: 6, value: 0n, length: 0 });
  assert.equal(prefixOfRange({ family: 4, start: 1n, end: 2n }), undefined);
});

test('a range holds its ends and nothing of the other family', () => {
  const given = { family: 4, start: 5n, end: 7n } as const;
  const held = [4n, 5n, 7n, 8n].map((value) => rangeContainsAddress(given, { family: 4, value }));
  assert.deepEqual(held, [false, true, true, false]);
  assert.equal(rangeContainsAddress(given, { family: 6, value: 6n }), false);
});
