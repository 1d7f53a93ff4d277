import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileRun } from './testing/hostile-run.ts';

test('30 000 damaged queries: each readable one gets one readable answer of a size that it allows, and nothing grows', () => {
  const kinds = hostileRun(20_260_101, 30_000);
  // Far enough from random octets that every way through is taken.
  for (const kind of [
    'answer',
    'no_data',
    'name_error',
    'refused',
    'format_error',
    'not_implemented',
    'bad_version',
    'transfer',
    'none',
  ]) {
    assert.ok((kinds.get(kind) ?? 0) > 20, `${kind}: ${kinds.get(kind)}`);
  }
});
