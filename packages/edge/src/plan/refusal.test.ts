import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isEnvironmental, refusalReason, troubleReason } from './refusal.ts';

test("a reason is nft's first error, on one line", () => {
  const message =
    'Error: Could not process rule: Operation not supported\nadd table inet levee\n   ^^^^^\nError: Could not process rule: x\n';
  assert.equal(refusalReason(message), 'the kernel refuses it: Operation not supported');
  assert.equal(
    troubleReason('/dev/stdin:1:1-3: Error: syntax error, unexpected x\n'),
    'the kernel takes no changes: syntax error, unexpected x',
  );
  assert.equal(refusalReason(''), 'the kernel refuses it: nft gave no reason');
  assert.ok(refusalReason(`Error: ${'x'.repeat(5000)}`).length < 400);
});

test('want of memory or rights is nobody’s rule', () => {
  assert.ok(isEnvironmental('Error: Could not process rule: Cannot allocate memory'));
  assert.ok(isEnvironmental('Error: Could not process rule: Operation not permitted'));
  assert.ok(!isEnvironmental('Error: Could not process rule: No such file or directory'));
  assert.ok(!isEnvironmental('Error: Could not process rule: Device or resource busy'));
});
