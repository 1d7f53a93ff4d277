import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import type { Database } from '../../store/database.ts';
import { type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { startForwardChecks } from './forward-check.ts';
import { bindPrimary, type Primary } from './testing/primaries.ts';
import { seedRecord } from './testing/records.ts';

let postgres: TestPostgres;
let forward: Primary;
let database: Database;
let provider: SeededProvider;

before(async () => {
  postgres = await startTestPostgres();
  forward = await bindPrimary(
    ['example.net'],
    [
      'right IN A 198.18.0.1',
      'wrong IN A 198.18.0.99',
      'many IN A 198.18.0.98',
      'many IN A 198.18.0.3',
      'six IN AAAA 2001:db8:0::1',
    ],
  );
  await forward.start();
  database = await postgres.createDatabase();
  provider = await seedProvider(database.pool, '198.18.0.0/15');
  await database.pool.query(
    `insert into subnet (account_uuid, subnet, role, provider_uuid) values ($1, '2001:db8::/32', 'provider', $1)`,
    [provider.uuid],
  );
});
after(async () => {
  await postgres?.stop();
  await forward?.remove();
});

test('a name is confirmed when it leads back to the address, denied when not, and unknown while nobody answers', async () => {
  const put = (address: string, name: string, prefix = provider.prefix) =>
    seedRecord(database.pool, { ...provider, prefix }, address, `${name}.example.net`);
  await put('198.18.0.1', 'right');
  await put('198.18.0.2', 'wrong');
  await put('198.18.0.3', 'many');
  await put('198.18.0.4', 'absent');
  await put('198.18.0.5', 'six');
  await put('2001:db8::1', 'six', '2001:db8::/32');
  await seedRecord(database.pool, provider, '198.18.0.6', 'refused.example.org');
  let told = 0;
  const options = { resolvers: [`127.0.0.1:${forward.port}`], committed: () => void told++, log: () => {} };
  const checks = startForwardChecks(database.pool, { ...options, lookEveryMilliseconds: 20 });
  try {
    // What could not be found out is asked again after five minutes, what is being asked after one.
    const answered = async () =>
      (await database.pool.query(`select from rdns_record where forward_due_at > now() + interval '2 min'`)).rows
        .length;
    await waitUntil(async () => (await answered()) === 7, 'the answers are stored');
  } finally {
    await checks.stop();
  }
  const { rows } = await database.pool.query<{ address: string; is: boolean | null }>(
    'select host(address) as address, forward_confirmed as is from rdns_record order by address',
  );
  assert.deepEqual(
    rows.map(({ address, is }) => [address, is]),
    [
      ['198.18.0.1', true],
      ['198.18.0.2', false],
      ['198.18.0.3', true],
      ['198.18.0.4', false],
      ['198.18.0.5', false],
      ['198.18.0.6', null],
      ['2001:db8::1', true],
    ],
  );
  assert.equal(told, 6);
});

test('what is known stays known while the resolver is silent, and stopping waits for no answer', async () => {
  const silent = createSocket('udp4');
  silent.bind(0, '127.0.0.1');
  const asked = once(silent, 'message');
  await once(silent, 'listening');
  await database.pool.query('update rdns_record set forward_due_at = null');
  const checks = startForwardChecks(database.pool, {
    resolvers: [`127.0.0.1:${silent.address().port}`],
    committed: () => {},
    log: () => {},
    lookEveryMilliseconds: 20,
  });
  await asked;
  const begun = performance.now();
  await checks.stop();
  assert.ok(performance.now() - begun < 1_000);
  silent.close();
  const { rows } = await database.pool.query('select from rdns_record where forward_confirmed');
  assert.equal(rows.length, 3);
});
