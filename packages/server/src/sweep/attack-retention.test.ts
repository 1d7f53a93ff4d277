import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type SeededProvider, seedProvider } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { pruneEvidence } from './attack-retention.ts';
import { startSweeper } from './sweeper.ts';

let postgres: TestPostgres;
let database: Database;
let provider: SeededProvider;

before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  provider = await seedProvider(database.pool);
});
after(() => postgres?.stop());

const query = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;

/** With `packets` packets and one second. `age` and `ended`: days ago. */
async function seedAttack(age: number, ended: number | null, packets: number): Promise<string> {
  const uuid = newUuid();
  await query(
    `with drawn as (select nextval('change_position') as position)
      insert into attack (uuid, sequence, owner_uuid, provider_uuid, dst, source, started_at, start_told, ended_at, end_reason,
        last_reported_at, created_at, updated_at, change_position)
      select $1, position, $2, $2, '198.18.0.1', 'levee', now() - $3 * interval '1 day', true, now() - $4 * interval '1 day',
        case when $4::int is not null then 'reported' end, now(), now(), now(), position from drawn`,
    [uuid, provider.uuid, age, ended],
  );
  await query(
    `insert into attack_evidence (attack_uuid, measured_at, packets, bytes, sampled, profile, entries, kept)
      values ($1, now(), 1, 1, 1, '[]', '[]', $2)`,
    [uuid, packets + 1],
  );
  await query(`insert into attack_timeline values ($1, 1, now(), 1, 1, '{}')`, [uuid]);
  await query(`insert into attack_sample (attack_uuid, at, pps) values ($1, now(), 1)`, [uuid]);
  await query(
    `insert into attack_packet select $1, n, now(), 1, 'x', null, 20, '\\x45' from generate_series(1, $2) n`,
    [uuid, packets],
  );
  return uuid;
}

const rowsOf = async (uuid: string): Promise<number> => {
  const tables = ['attack_evidence', 'attack_timeline', 'attack_packet', 'attack_sample'];
  const counts = await Promise.all(tables.map((table) => query(`select from ${table} where attack_uuid = $1`, [uuid])));
  return counts.reduce((sum, rows) => sum + rows.length, 0);
};
const present = async (uuid: string) => (await query('select from attack where uuid = $1', [uuid])).length;

test('what is kept of attacks that ended long ago goes, the attacks and what goes on stay', async () => {
  const [old, recent, ongoing] = [
    await seedAttack(400, 366, 3),
    await seedAttack(400, 364, 3),
    await seedAttack(400, null, 3),
  ];
  assert.equal(await pruneEvidence(database.pool, undefined), 0);
  assert.equal(await pruneEvidence(database.pool, 365), 1);
  assert.deepEqual(await Promise.all([old, recent, ongoing].map(rowsOf)), [0, 6, 6]);
  assert.equal(await present(old), 1);
  assert.equal(await pruneEvidence(database.pool, 365), 0);
});

test('in all there is a bound, and the newest attacks have what there is room for', async () => {
  await query('delete from attack_evidence');
  const attacks: string[] = [];
  for (const age of [5, 4, 3, 2, 1]) attacks.push(await seedAttack(age, age - 1, 9));
  assert.equal(await pruneEvidence(database.pool, 365, 30), 2);
  assert.deepEqual(await Promise.all(attacks.map(rowsOf)), [0, 0, 12, 12, 12]);
});

test('the sweep forgets by itself', async () => {
  const old = await seedAttack(400, 366, 3);
  const sweeper = startSweeper(database.pool, { committed: () => {}, attackKeepDays: 365 });
  try {
    await waitUntil(async () => (await rowsOf(old)) === 0, 'it is gone');
  } finally {
    await sweeper.stop();
  }
});
