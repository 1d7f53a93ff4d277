import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mitigationHoldSeconds } from './hold.ts';

test('measures stay twice as long with each attack that came before, and never longer than a day', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((earlier) => mitigationHoldSeconds(300, earlier)),
    [300, 600, 1200, 2400],
  );
  assert.equal(mitigationHoldSeconds(300, 9), 86_400);
  assert.equal(mitigationHoldSeconds(86_400, 5000), 86_400);
  assert.equal(mitigationHoldSeconds(0, 3), 0);
});
