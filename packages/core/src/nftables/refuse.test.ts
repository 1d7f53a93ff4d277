import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixedChains } from './skeleton.ts';

test('a frame that was not addressed to this host’s hardware is dropped before anything could answer it', () => {
  const lines = fixedChains(['eth0']).get('refuse') ?? [];
  const answers = lines.findIndex((line) => line.includes('reject'));
  assert.equal(lines.indexOf('meta pkttype != 0 drop'), 0);
  assert.ok(answers > 0);
});
