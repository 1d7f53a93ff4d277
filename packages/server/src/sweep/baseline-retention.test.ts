import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { pruneBaselines } from './baseline-retention.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres.stop());

test('what was usual of a destination goes when nobody has told of it for eight weeks, and no sooner', async () => {
  const { pool } = await postgres.createDatabase();
  await pool.query(`insert into detection_baseline (dst, vector, hour, pps, bps, weight, updated_at)
    values ('203.0.113.7', 'total', 1, 1, 1, 1, now() - interval '57 days'),
      ('203.0.113.8', 'total', 1, 1, 1, 1, now() - interval '55 days')`);
  assert.equal(await pruneBaselines(pool), 1);
  const { rows } = await pool.query('select host(dst) as dst from detection_baseline');
  assert.deepEqual(rows, [{ dst: '203.0.113.8' }]);
});
