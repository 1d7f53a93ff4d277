import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import fc from 'fast-check';
import type { Database } from '../../store/database.ts';
import { type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { createFakeServer, type FakeServer, fakeAway, fakeRefusal } from './testing/fake-server.ts';
import { readRecords, seedRecord, seedRecordDeletion, seedZone } from './testing/records.ts';
import { startZoneWorker, type ZoneWorker } from './zone-worker.ts';

const zone = '18.198.in-addr.arpa';
const inner = '9.18.198.in-addr.arpa';
const placed = reverseZoneFromTrusted(zone);

const started: ZoneWorker[] = [];
let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(async () => {
  await Promise.all(started.map((worker) => worker.stop()));
  await postgres?.stop();
});

interface Rig {
  readonly database: Database;
  readonly provider: SeededProvider;
  readonly server: FakeServer;
  worker: ZoneWorker;
  readonly start: (server?: FakeServer) => ZoneWorker;
  put(address: string, record: string): Promise<void>;
  remove(address: string): Promise<void>;
}

async function rig(compareEveryMilliseconds = 600_000, prefix?: string): Promise<Rig> {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool, prefix);
  const uuid = await seedZone(database.pool, zone, 'rfc2136');
  const server = createFakeServer(zone);
  const start = (of = server) => {
    const worker = startZoneWorker({
      pool: database.pool,
      uuid,
      zone: placed,
      server: of,
      prove: async () => {},
      committed: () => {},
      log: () => {},
      compareEveryMilliseconds,
    });
    started.push(worker);
    return worker;
  };
  const self: Rig = {
    database,
    provider,
    server,
    worker: start(),
    start,
    async put(address, record) {
      await seedRecord(database.pool, provider, address, record);
      self.worker.wake();
    },
    async remove(address) {
      await seedRecordDeletion(database.pool, address);
      self.worker.wake();
    },
  };
  return self;
}

const owner = (octets: string) => `${octets}.${zone}`;
const appliedAll = async ({ database }: Rig) => (await readRecords(database.pool)).every(({ applied }) => applied);

test('what the server lost or changed is put right, and names without a row are not touched', async () => {
  const given = await rig(40);
  given.server.records.set(owner('1.1'), 'foreign.example.net');
  await given.put('198.18.0.1', 'a.example.net');
  await given.put('198.18.0.2', 'b.example.net');
  await waitUntil(() => appliedAll(given), 'applied');
  given.server.records.delete(owner('1.0'));
  given.server.records.set(owner('2.0'), 'elsewhere.example.net');
  await waitUntil(() => given.server.records.get(owner('1.0')) === 'a.example.net', 'the lost one is back');
  await waitUntil(() => given.server.records.get(owner('2.0')) === 'b.example.net', 'the other is right');
  assert.equal(given.server.records.get(owner('1.1')), 'foreign.example.net');
  await given.worker.stop();
});

test('a record that is refused is tried again by itself, and holds up no other', async () => {
  const given = await rig();
  given.server.refuses.add(owner('3.0'));
  await given.put('198.18.0.3', 'c.example.net');
  const failure = async () =>
    (await readRecords(given.database.pool)).find(({ address }) => address === '198.18.0.3')?.failure;
  await waitUntil(async () => (await failure()) === `The fake refuses ${owner('3.0')}.`, 'failed');
  await given.put('198.18.0.4', 'd.example.net');
  await waitUntil(() => given.server.records.has(owner('4.0')), 'the other is there');
  given.server.refuses.clear();
  await waitUntil(async () => (await failure()) === null && given.server.records.has(owner('3.0')), 'healed');
  await given.worker.stop();
});

test('one account whose records are all refused costs a bounded number of messages at a time, and no other waits for it', async () => {
  const given = await rig(600_000, '198.18.0.0/24');
  await given.worker.stop();
  const other = await seedProvider(given.database.pool, '198.18.1.0/24');
  for (let last = 1; last <= 200; last++) {
    given.server.refuses.add(owner(`${last}.0`));
    await seedRecord(given.database.pool, given.provider, `198.18.0.${last}`, 'x.example.net');
    if (last === 100) await seedRecord(given.database.pool, other, '198.18.1.1', 'y.example.net');
  }
  const server = Object.assign(createFakeServer(zone), { refuses: given.server.refuses });
  given.worker = given.start(server);
  const rows = () => readRecords(given.database.pool);
  await waitUntil(() => server.records.has(owner('1.1')), 'what stood in the middle of them is there');
  assert.ok(server.messages < 250, `${server.messages} messages before it`);
  const seen = (await rows()).find(({ failure, held }) => failure === null && held);
  assert.ok(seen !== undefined, 'others are still to be tried');
  await seedRecord(given.database.pool, other, '198.18.1.2', 'z.example.net');
  const before = server.messages;
  given.worker.wake();
  await waitUntil(() => server.records.has(owner('2.1')), 'a fresh one is there');
  assert.ok(server.messages - before < 250, `${server.messages - before} messages before it`);
  await waitUntil(
    async () => (await rows()).filter(({ failure }) => failure !== null).length === 200,
    'all failed',
    20_000,
  );
  assert.ok(server.messages < 1_000, `${server.messages} messages for 200 records`);
  await given.worker.stop();
});

test('whichever names a server refuses, exactly those end failed and all others applied', async () => {
  const given = await rig();
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(numbers, async (refused) => {
      await given.worker.stop();
      const server = createFakeServer(zone);
      for (const number of refused) server.refuses.add(owner(`${number}.0`));
      for (let number = 1; number <= 60; number++)
        await seedRecord(given.database.pool, given.provider, `198.18.0.${number}`, 'x.example.net');
      given.worker = given.start(server);
      await waitUntil(
        async () => (await readRecords(given.database.pool)).every((row) => row.applied || row.failure !== null),
        'each is applied or failed',
      );
      const failed = (await readRecords(given.database.pool)).filter(({ applied }) => !applied);
      const numbersOf = failed.map(({ address }) => Number(address.split('.')[3]));
      assert.deepEqual(numbersOf.sort(), [...refused].sort());
      assert.equal(server.records.size, 60 - refused.length);
    }),
    { numRuns: 8 },
  );
  await given.worker.stop();
});

test('a narrower zone inside is left to its own worker', async () => {
  const given = await rig();
  await seedZone(given.database.pool, inner, 'rfc2136');
  await given.put('198.18.9.1', 'inner.example.net');
  await given.put('198.18.8.1', 'outer.example.net');
  await waitUntil(() => given.server.records.has(owner('1.8')), 'the outer is there');
  assert.equal(given.server.records.has(owner('1.9')), false);
  await given.worker.stop();
});

test('a record that was deleted and made anew ends as the new one, in whatever order the server hears of it', async () => {
  const given = await rig();
  await given.put('198.18.0.5', 'old.example.net');
  await waitUntil(() => appliedAll(given), 'applied');
  given.server.trouble = fakeAway;
  await given.remove('198.18.0.5');
  await given.put('198.18.0.5', 'new.example.net');
  given.server.trouble = undefined;
  await waitUntil(async () => {
    const rows = await readRecords(given.database.pool);
    return rows.length === 1 && rows[0]?.applied === true;
  }, 'one row is left');
  assert.equal(given.server.records.get(owner('5.0')), 'new.example.net');
  await given.worker.stop();
});

type Step =
  | { readonly do: 'put'; readonly last: number; readonly record: number }
  | { readonly do: 'remove' | 'lose' | 'refuse'; readonly last: number }
  | { readonly do: 'away' | 'refuseAll' | 'well' | 'restart' };

const last = fc.integer({ min: 1, max: 6 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), last, record: fc.nat(3) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('remove' as const, 'lose' as const, 'refuse' as const), last }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('away', 'refuseAll', 'well', 'restart') }) },
);

test('random changes, losses, refusals, outages and restarts end in what the database says', async () => {
  const given = await rig(50);
  let server = given.server;
  server.records.set(owner('99.9'), 'foreign.example.net');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      for (const each of steps) {
        if (each.do === 'put') await given.put(`198.18.0.${each.last}`, `h${each.record}.example.net`);
        else if (each.do === 'remove') await given.remove(`198.18.0.${each.last}`);
        else if (each.do === 'lose') server.records.delete(owner(`${each.last}.0`));
        else if (each.do === 'refuse') server.refuses.add(owner(`${each.last}.0`));
        else if (each.do === 'restart') {
          await given.worker.stop();
          const next = createFakeServer(zone);
          for (const [name, target] of server.records) next.records.set(name, target);
          server = next;
          given.worker = given.start(server);
        } else server.trouble = { away: fakeAway, refuseAll: fakeRefusal, well: undefined }[each.do];
      }
      server.trouble = undefined;
      server.refuses.clear();
      await waitUntil(async () => {
        const rows = await readRecords(given.database.pool);
        if (!rows.every((row) => row.applied && !row.deleted)) return false;
        const wanted = rows.map((row): [string, string] => [owner(`${row.address.split('.')[3]}.0`), row.record]);
        const have = [...server.records].filter(([name]) => name !== owner('99.9'));
        return JSON.stringify(wanted.sort()) === JSON.stringify(have.sort());
      }, 'as the database says');
      assert.equal(server.records.get(owner('99.9')), 'foreign.example.net');
    }),
    { numRuns: 12 },
  );
  await given.worker.stop();
});
