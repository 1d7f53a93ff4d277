/** The guarantee of survival, at length: 60 kills at random moments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { crashRounds } from './crash-rounds.ts';

test('60 times kill -9 of the control plane, the edge and both, under change, loses no answered rule and opens nothing', {
  skip: labObstacle() ?? false,
}, async (t) => {
  const report = await crashRounds(60);
  t.diagnostic(JSON.stringify(report));
  assert.deepEqual(report.kills, { control: 20, edge: 20, both: 20 });
});
