import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verify } from '@node-rs/argon2';
import { hashPassword, isCommonPassword, passwordProblem } from './password.ts';

test('what many people use is common, in the forms that reach twelve characters', () => {
  const common = [
    'passwordpassword',
    'PASSWORD1234!',
    '1234567890123',
    'abcdefghijkl',
    'zyxwvutsrqpo',
    'aaaaaaaaaaaa',
    'ababababababab',
    '123123123123',
    '!!!dragon!!!',
    'qwerty123456',
    '2024-12-31-2024',
  ];
  for (const password of common) assert.ok(isCommonPassword(password), password);
});

test('what is long and nobody uses is not common', () => {
  const fine = [
    'correct-horse-battery-staple',
    'vermilion lantern quay',
    'J8#kq0!zPw2v',
    'ünïcödé pässwörter sind gut',
    'x7y8z9-kettle',
  ];
  for (const password of fine) assert.ok(!isCommonPassword(password), password);
});

test('a password made of the username or the email address is refused', () => {
  assert.equal(passwordProblem('albertina2024', ['albertina', 'a@example.net'], '/password')?.code, 'too_common');
  assert.equal(passwordProblem('a@example.netX', ['albertina', 'a@example.net'], '/password')?.code, 'too_common');
  assert.equal(passwordProblem('albertina-and-seven-swans', ['albertina'], '/password'), undefined);
});

test('a hash is argon2id, salted, and verifies its password only', async () => {
  const [one, two] = await Promise.all([hashPassword('vermilion lantern'), hashPassword('vermilion lantern')]);
  assert.match(one, /^\$argon2id\$/);
  assert.notEqual(one, two);
  assert.equal(await verify(one, 'vermilion lantern'), true);
  assert.equal(await verify(one, 'vermilion lantern '), false);
});
