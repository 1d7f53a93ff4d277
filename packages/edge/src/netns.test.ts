import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandInNamespace } from './netns.ts';

test('a command goes into the namespace as arguments, and stays as it is without one', () => {
  assert.deepEqual(commandInNamespace('lab-1', ['node', 'x.ts']), ['ip', 'netns', 'exec', 'lab-1', 'node', 'x.ts']);
  assert.deepEqual(commandInNamespace(undefined, ['node']), ['node']);
  assert.deepEqual(commandInNamespace('', ['node']), ['node']);
});

test('what cannot be the name of a namespace is refused', () => {
  for (const name of ['../x', 'a/b', '-all', 'a b', '.', 'x;y'])
    assert.throws(() => commandInNamespace(name, []), RangeError);
});
