import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ChangeTail, startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import type { RecordData, ZoneRecord, ZoneSettings, ZoneSink } from '../dns/zone-source.ts';
import { type RdnsReconciler, startRdnsReconciler } from './reconciler.ts';
import { readRecords, seedRecord, seedRecordDeletion, seedZone } from './testing/records.ts';

const zone = '18.198.in-addr.arpa';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

/** What a DNS server would serve, and whether a secondary could have missed any of it. */
class Copy implements ZoneSink {
  readonly zones = new Map<string, { settings: ZoneSettings; records: Map<string, RecordData> }>();
  readonly faults: string[] = [];
  /** Names of the zones that were given whole. */
  readonly replaced: string[] = [];

  replace(settings: ZoneSettings, records: Iterable<ZoneRecord>): void {
    const before = this.zones.get(settings.name);
    if (before !== undefined && settings.serial < before.settings.serial) this.faults.push('the serial went back');
    this.zones.set(settings.name, { settings, records: new Map(records) });
    this.replaced.push(settings.name);
  }

  change(settings: ZoneSettings, set: Iterable<ZoneRecord>, removed: Iterable<string>): void {
    const known = this.zones.get(settings.name);
    if (known === undefined) throw new Error(`${settings.name} was never given`);
    const [put, gone] = [[...set], [...removed]];
    if (put.length + gone.length > 0 && settings.serial <= known.settings.serial)
      this.faults.push('changed under one serial');
    known.settings = settings;
    for (const [owner, target] of put) known.records.set(owner, target);
    for (const owner of gone) known.records.delete(owner);
  }

  remove(name: string): void {
    this.zones.delete(name);
  }
}

interface Replica {
  readonly rdns: RdnsReconciler;
  readonly tail: ChangeTail;
  readonly copy: Copy;
  stop(): Promise<void>;
}

async function startReplica(database: Database, served = true): Promise<Replica> {
  const tail = await startChangeTail(database);
  const rdns = await startRdnsReconciler({ database, tail, log: () => {}, servesEmbedded: served });
  const copy = new Copy();
  const leave = served ? rdns.zones.subscribe(copy) : () => {};
  return {
    rdns,
    tail,
    copy,
    async stop() {
      leave();
      await rdns.stop();
      await tail.stop();
    },
  };
}

async function converged(database: Database, copies: readonly Copy[]): Promise<boolean> {
  const rows = await readRecords(database.pool);
  if (!rows.every((row) => row.applied && !row.deleted)) return false;
  const wanted = JSON.stringify(rows.map((row): [string, string] => [ownerOf(row.address), row.record]).sort());
  const serials = new Set(copies.map((copy) => copy.zones.get(zone)?.settings.serial));
  return (
    serials.size === 1 &&
    copies.every((copy) => JSON.stringify([...(copy.zones.get(zone)?.records ?? [])].sort()) === wanted)
  );
}

const ownerOf = (address: string) => `${address.split('.').reverse().slice(0, 2).join('.')}.${zone}`;

test('every replica ends with the same records under the same serial, and no change goes without a new one', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const replicas = [await startReplica(database), await startReplica(postgres.openAgain(database))];
  try {
    await seedZone(database.pool, zone);
    const wake = () => replicas[0]?.tail.wake();
    wake();
    for (let round = 0; round < 8; round++) {
      const work: Promise<void>[] = [];
      for (let last = 1; last <= 10; last++) {
        const address = `198.18.${round % 3}.${last}`;
        work.push(
          (last + round) % 4 === 0
            ? seedRecordDeletion(database.pool, address)
            : seedRecord(database.pool, provider, address, `h${round}-${last}.example.net`),
        );
        if (last % 3 === 0) wake();
      }
      await Promise.all(work);
      wake();
    }
    await waitUntil(
      () =>
        converged(
          database,
          replicas.map(({ copy }) => copy),
        ),
      'both as the database says',
    );
    // One that starts now reads it all at once.
    const late = await startReplica(postgres.openAgain(database));
    replicas.push(late);
    await waitUntil(() => converged(database, [late.copy, ...replicas.map(({ copy }) => copy)]), 'the late one too');
    for (const { copy } of replicas) assert.deepEqual(copy.faults, []);
  } finally {
    for (const replica of replicas) await replica.stop();
  }
});

test('a zone that another driver takes is no longer given, and one that comes back is whole', async () => {
  const database = await postgres.createDatabase();
  const provider: SeededProvider = await seedProvider(database.pool);
  const uuid = await seedZone(database.pool, zone);
  const replica = await startReplica(database);
  try {
    await seedRecord(database.pool, provider, '198.18.0.1', 'a.example.net');
    replica.tail.wake();
    await waitUntil(() => converged(database, [replica.copy]), 'served');
    const change = async (driver: string) => {
      await database.pool.query(
        `with changed as (update rdns_zone set driver = $2, settings = '{"ttl":60,"server":"127.0.0.1:9"}' where uuid = $1 returning uuid)
          insert into change (kind, object_uuid) select 'rdns_zone', uuid from changed`,
        [uuid, driver],
      );
      replica.tail.wake();
    };
    await change('rfc2136');
    await waitUntil(() => !replica.copy.zones.has(zone), 'given no more');
    await change('embedded');
    await waitUntil(() => replica.copy.zones.get(zone)?.records.get(ownerOf('198.18.0.1')) === 'a.example.net', 'back');
    assert.equal(replica.copy.zones.get(zone)?.settings.ttlSeconds, 60);
  } finally {
    await replica.stop();
  }
});

test('a replica without a DNS server leaves embedded zones to those that have one', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  await seedZone(database.pool, zone);
  const without = await startReplica(database, false);
  try {
    await seedRecord(database.pool, provider, '198.18.0.1', 'a.example.net');
    without.tail.wake();
    const withServer = await startReplica(postgres.openAgain(database));
    try {
      await waitUntil(() => converged(database, [withServer.copy]), 'served by the other');
    } finally {
      await withServer.stop();
    }
  } finally {
    await without.stop();
  }
});

test('a zone that comes, goes or cannot be followed costs those that are there nothing but what is different', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  await seedZone(database.pool, zone);
  const replica = await startReplica(database);
  const { copy, tail } = replica;
  const inner = `0/25.0.${zone}`;
  const recordsOf = (name: string) => copy.zones.get(name)?.records ?? new Map();
  try {
    for (const last of [1, 2, 200])
      await seedRecord(database.pool, provider, `198.18.0.${last}`, `h${last}.example.net`);
    tail.wake();
    await waitUntil(() => recordsOf(zone).size === 3, 'served');
    copy.replaced.length = 0;
    await seedZone(database.pool, '19.198.in-addr.arpa');
    await seedZone(database.pool, inner, 'embedded', { ttl: 300, nameservers: ['ns1.example.net'] });
    tail.wake();
    await waitUntil(() => copy.zones.has(inner) && recordsOf(inner).size === 2, 'the new ones are there');
    await raiseSerial(database, zone);
    tail.wake();
    await waitUntil(() => recordsOf(zone).size === 130, 'the aliases, the delegation and the one record beside');
    assert.deepEqual(recordsOf(zone).get(`1.0.${zone}`), { alias: `1.${inner}` });
    assert.deepEqual(recordsOf(zone).get(inner), { nameservers: ['ns1.example.net'] });
    assert.equal(recordsOf(zone).get(ownerOf('198.18.0.200')), 'h200.example.net');
    assert.deepEqual(copy.replaced.sort(), ['19.198.in-addr.arpa', inner].sort());
    assert.deepEqual(copy.faults, []);
  } finally {
    await replica.stop();
  }
});

/** As a command does that changes what a zone holds of others. */
async function raiseSerial({ pool }: Database, name: string): Promise<void> {
  await pool.query(
    `with raised as (
        update rdns_zone set serial = serial + 1, serial_position = nextval('change_position') where zone = $1
        returning uuid, serial_position
      )
      insert into change (position, kind, object_uuid) select serial_position, 'rdns_zone', uuid from raised`,
    [name],
  );
}
