import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from '../store/database.ts';
import { seedProvider } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { addSample, MOST_SAMPLES } from './attack-samples.ts';
import { executorOf, transact } from './executor.ts';
import { recordAttack } from './record-attack.ts';

let postgres: TestPostgres;
let database: Database;
let uuid: string;
const began = Date.parse('2026-01-31T12:00:00Z');

before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  await seedProvider(database.pool);
  const now = new Date(began);
  const report = {
    source: 'levee',
    externalId: undefined,
    dst: '198.18.0.1',
    phase: 'started',
    now,
    details: {},
  } as const;
  const recorded = await transact(database.pool, (executor) => recordAttack(executor, report));
  assert.ok(recorded.ok);
  uuid = recorded.value.row.uuid;
});
after(() => postgres?.stop());

test('a timeline of any length keeps its beginning, its peaks and its end, within its bound', async () => {
  const executor = executorOf(database.pool);
  const seconds = 1100;
  const [highestPps, highestBps] = [333, 700];
  for (let second = 0; second < seconds; second++) {
    const sample = {
      at: new Date(began + second * 1000),
      pps: second === highestPps ? 9_000 : 1_000,
      bps: second === highestBps ? 90_000 : 10_000,
    };
    await addSample(executor, uuid, sample, true);
  }
  const { rows } = await database.pool.query(
    `select round(extract(epoch from at)::numeric - $2)::int as second from attack_sample where attack_uuid = $1 order by at`,
    [uuid, began / 1000],
  );
  const kept: number[] = rows.map(({ second }) => second);
  assert.ok(kept.length <= MOST_SAMPLES && kept.length > MOST_SAMPLES / 3, `${kept.length} are kept`);
  assert.deepEqual([kept[0], kept.at(-1)], [0, seconds - 1]);
  assert.ok(kept.includes(highestPps) && kept.includes(highestBps));
  assert.deepEqual(
    kept.slice(-100),
    Array.from({ length: 100 }, (_, index) => seconds - 100 + index),
    'the newest are whole',
  );
  const widest = Math.max(...kept.slice(1).map((second, index) => second - (kept[index] ?? 0)));
  assert.ok(widest <= 16, `${widest} s between two`);
});
