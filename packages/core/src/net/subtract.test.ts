import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { prefixContainsAddress } from './prefix.ts';
import { formatPrefix, prefixFromTrusted } from './prefix-text.ts';
import { subtract } from './subtract.ts';

const whole = prefixFromTrusted('203.0.113.0/26');
const inside = fc.tuple(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 27, max: 32 })).map(([offset, length]) => {
  const size = 1n << BigInt(32 - length);
  const value = whole.value + (BigInt(offset) / size) * size;
  return { family: 4 as const, value, length };
});

test('what is left holds exactly the addresses that were not taken, each once', () => {
  fc.assert(
    fc.property(fc.array(inside, { maxLength: 6 }), (given) => {
      const taken = given.filter(
        (each, index) =>
          !given.some(
            (other, at) => at !== index && (at < index || other.length < each.length) && overlap(each, other),
          ),
      );
      const pieces = subtract(whole, taken);
      for (let offset = 0n; offset < 64n; offset++) {
        const address = { family: 4 as const, value: whole.value + offset };
        const isTaken = taken.some((each) => prefixContainsAddress(each, address));
        const holders = pieces.filter((piece) => prefixContainsAddress(piece, address)).length;
        assert.equal(holders, isTaken ? 0 : 1, `${offset} of ${taken.map(formatPrefix)}`);
      }
    }),
    { numRuns: 500 },
  );
});

function overlap(a: typeof whole, b: typeof whole): boolean {
  return prefixContainsAddress(a, b) || prefixContainsAddress(b, a);
}

test('taking all, or more, leaves nothing; taking elsewhere leaves all', () => {
  assert.deepEqual(subtract(whole, [whole]), []);
  assert.deepEqual(subtract(whole, [prefixFromTrusted('203.0.113.0/24')]), []);
  assert.deepEqual(subtract(whole, [prefixFromTrusted('198.51.100.0/24')]).map(formatPrefix), ['203.0.113.0/26']);
});
