import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { createHeldLeads, type HeldLeads } from './held-leads.ts';
import { leadLocksOn, SilenceWatch } from './lead-locks.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';
import { waitUntil } from './testing/wait-until.ts';

let postgres: TestPostgres;
let database: Database;
before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
});
after(() => postgres?.stop());

const said: string[] = [];
const log = (message: string) => said.push(message);
const quick = { log, silentMilliseconds: 1_000 };
const open = () => database.connect('levee test', 5_000);
/** A holder that shows no life, as one whose process stands still. */
async function silentHolder(name: string) {
  const client = await open();
  let ended = false;
  client.once('end', () => {
    ended = true;
  });
  const { rows } = await client.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as got', [name]);
  assert.equal(rows[0].got, true);
  return { client, hasEnded: () => ended };
}

test('who shows no life loses its lead to one that waits; who shows it keeps it, however long another waits', async () => {
  const silent = await silentHolder('one');
  const [holder, waiter] = [await open(), await open()];
  const held = leadLocksOn(holder, quick);
  const waits = leadLocksOn(waiter, quick);
  assert.deepEqual(await held.take(['two']), ['two']);
  const begun = Date.now();
  const taken: string[] = [];
  await waitUntil(async () => {
    taken.push(...(await waits.take(['one', 'two'])));
    return taken.length > 0;
  }, 'the silent one loses it');
  assert.ok(Date.now() - begun >= 1_000);
  while (Date.now() - begun < 3_000) {
    taken.push(...(await waits.take(['two'])));
    await delay(100);
  }
  assert.deepEqual(taken, ['one']);
  assert.ok(silent.hasEnded());
  await held.prove();
  assert.equal(said.length, 1);
  await Promise.all([holder.end(), waiter.end()]);
});

test('a session that works on a long statement is not silent', async () => {
  const { client, hasEnded } = await silentHolder('three');
  const waiter = await open();
  const waits = leadLocksOn(waiter, quick);
  let done = false;
  const statement = client.query('select pg_sleep(2.5)').then(() => {
    done = true;
  });
  while (!done) {
    assert.deepEqual(await waits.take(['three']), []);
    await delay(100);
  }
  await statement;
  assert.equal(hasEnded(), false);
  await Promise.all([client.end(), waiter.end()]);
});

test('whose session was ended cannot prove its leads, is told that they are lost, and may have them again', async () => {
  let lost = 0;
  const leads: HeldLeads = createHeldLeads(database, { name: 'levee test lost', log, onLost: () => lost++ });
  assert.deepEqual([...(await leads.hold(['four', 'five']))], ['four', 'five']);
  await leads.prove();
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'levee test lost'`,
  );
  await assert.rejects(leads.prove());
  assert.equal(lost, 1);
  await waitUntil(async () => (await leads.hold(['five'])).has('five'), 'it has it again');
  await leads.stop();
});

test('time in which the database or the one who looks was away is no silence of the leader', () => {
  const watch = new SilenceWatch();
  const at = (now: number, life: string | null = 'a', works = false) => watch.look([{ pid: 7, life, works, now }])[0];
  assert.deepEqual([at(0), at(1_000), at(61_000), at(62_000)], [0, 1_000, 2_500, 3_500]);
  assert.deepEqual([at(63_000, 'b'), at(64_000, 'b'), at(63_000, 'b')], [0, 1_000, 1_000]);
  assert.deepEqual([at(65_000, 'b', true), at(66_000, 'b'), at(67_000, null), at(68_000, null)], [0, 0, 0, 0]);
});
