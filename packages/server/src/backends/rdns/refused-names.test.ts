import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { createRfc2136 } from './rfc2136.ts';
import { digPointers } from './testing/dig.ts';
import { bindPrimary, type Primary, testKey } from './testing/primaries.ts';
import { readRecords, seedRecord, seedZone } from './testing/records.ts';
import { startZoneWorker } from './zone-worker.ts';

const zone = '0.18.198.in-addr.arpa';
const placed = reverseZoneFromTrusted(zone);
const hosts = [40, 41, 42, 43, 44, 45, 46, 47, 48];
const denied = [40, 44, 48];

let postgres: TestPostgres;
let bind: Primary;
before(async () => {
  postgres = await startTestPostgres();
  const records = hosts.map((host) => `${host} IN PTR old${host}.example.net.`);
  bind = await bindPrimary([zone], records, denied.map(String));
});
after(async () => {
  await bind?.remove();
  await postgres?.stop();
});

test('of names that changed while the server was away, exactly those that it refuses fail, wherever they stand', async () => {
  const { pool } = await postgres.createDatabase();
  const provider = await seedProvider(pool);
  const server = `127.0.0.1:${bind.port}`;
  const uuid = await seedZone(pool, zone, 'rfc2136', { server, ttl: 300 });
  const worker = startZoneWorker({
    pool,
    uuid,
    zone: placed,
    server: createRfc2136({ zone, server, tsig: testKey, ttlSeconds: 300 }),
    prove: async () => {},
    committed: () => {},
    log: () => {},
  });
  try {
    for (const host of hosts) await seedRecord(pool, provider, `198.18.0.${host}`, `new${host}.example.net`);
    worker.wake();
    await bind.start();
    await waitUntil(
      async () => (await readRecords(pool)).every(({ applied, failure }) => applied || failure !== null),
      'each is applied or failed',
    );
    const rows = await readRecords(pool);
    for (const [index, { applied, failure }] of rows.entries()) {
      const host = hosts[index] ?? 0;
      const isDenied = denied.includes(host);
      assert.equal(applied, !isDenied, `${host}: ${failure}`);
      if (isDenied) assert.match(failure ?? '', /does not allow this update/);
      const served = await digPointers(bind.port, `${host}.${zone}`);
      assert.deepEqual(served, [`${isDenied ? 'old' : 'new'}${host}.example.net`]);
    }
  } finally {
    await worker.stop();
  }
});
