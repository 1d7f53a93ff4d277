import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createLocation, createRouter } from '../store/routers.ts';
import { seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { createRuleReader } from './read-rules.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

test('a rule whose counts sum to more than a number holds is read, with the largest one', async () => {
  const database = await postgres.createDatabase();
  const rule = await seedRule(database.pool, await seedProvider(database.pool));
  await createLocation(database.pool, 'fra1');
  for (const name of ['a', 'b']) await createRouter(database.pool, { name, location: 'fra1', tunnelAddresses: [] });
  await database.pool.query(
    `insert into rule_hit (rule_uuid, router_uuid, packets, bytes) select $1, uuid, 9223372036854775807, 7 from router`,
    [rule.uuid],
  );
  const row = await createRuleReader(database.pool).read(rule.uuid);
  assert.deepEqual([row?.packets, row?.bytes], [Number.MAX_SAFE_INTEGER, 14]);
});
