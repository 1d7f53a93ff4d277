import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from './reasons.ts';
import { hostileRun } from './testing/hostile-run.ts';

test('30 000 damaged datagrams throw nothing, are all accounted for, are read to their length only, and fill no memory', () => {
  const totals = hostileRun(5, 30_000);
  assert.ok((totals.get('records') ?? 0) > 30_000, 'the datagrams were not damaged so much that nothing was read');
  assert.deepEqual(
    Object.keys(reasons).filter((reason) => !totals.has(reason)),
    [],
    'reasons that no datagram met',
  );
});
