/** The guarantee of survival, briefly: 12 kills. crash.long.ts does it 60 times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { crashRounds } from './crash-rounds.ts';

test('kill -9 of the control plane, the edge and both, under change, loses no answered rule and opens nothing', {
  skip: labObstacle() ?? false,
}, async (t) => {
  const report = await crashRounds(12);
  t.diagnostic(JSON.stringify(report));
  assert.deepEqual(report.kills, { control: 4, edge: 4, both: 4 });
  assert.ok(report.created > 50 && report.deleted > 5, JSON.stringify(report));
});
