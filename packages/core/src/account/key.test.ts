import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { KEY_RANDOM_BYTES, type KeyRole, makeKey, parseKeyRole } from './key.ts';

const bytes = fc.uint8Array({ minLength: KEY_RANDOM_BYTES, maxLength: KEY_RANDOM_BYTES });
const role = fc.constantFrom<KeyRole>('operator', 'provider', 'user', 'router', 'detector');

test('a key has the documented form and gives back its role', () => {
  fc.assert(
    fc.property(role, bytes, (kind, random) => {
      const key = makeKey(kind, random);
      assert.match(key, /^lv_[dopur]_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
      assert.equal(key[3], kind[0]);
      assert.equal(parseKeyRole(key), kind);
    }),
  );
});

test('different random bytes give different keys', () => {
  fc.assert(
    fc.property(role, bytes, bytes, (kind, a, b) => {
      fc.pre(!Buffer.from(a).equals(Buffer.from(b)));
      assert.notEqual(makeKey(kind, a), makeKey(kind, b));
    }),
  );
});

test('every single mistyped character is noticed', () => {
  const digits = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'];
  fc.assert(
    fc.property(role, bytes, fc.nat(49), fc.constantFrom(...digits), (kind, random, at, typed) => {
      const key = makeKey(kind, random);
      const position = 5 + at;
      fc.pre(key[position] !== '_' && key[position] !== typed);
      assert.equal(parseKeyRole(key.slice(0, position) + typed + key.slice(position + 1)), undefined);
    }),
  );
});

test('another letter in front of a good secret is refused', () => {
  const key = makeKey('user', new Uint8Array(KEY_RANDOM_BYTES).fill(7));
  assert.equal(parseKeyRole(key.replace('lv_u_', 'lv_o_')), undefined);
});

test('the checksum is the CRC-32 that zlib computes', () => {
  const key = makeKey('router', new Uint8Array(KEY_RANDOM_BYTES).fill(0xa5));
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
  assert.equal(value, crc32(key.slice(0, -7)));
});

test('what is not a key at all is refused', () => {
  for (const text of ['', 'lv_', 'lv_u__', 'x'.repeat(100_000), `lv_u_${'0'.repeat(43)}_000000\n`]) {
    assert.equal(parseKeyRole(text), undefined);
  }
  assert.throws(() => makeKey('user', new Uint8Array(4)), RangeError);
});
