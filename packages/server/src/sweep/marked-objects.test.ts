import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type StoredReport, saveReports } from '../store/reports.ts';
import { createLocation, createRouter, enrolRouter, removeRouter } from '../store/routers.ts';
import { markingText, type StoredKindName, storedKinds } from '../store/stored-kinds.ts';
import { type SeededChange, type SeededProvider, seedProvider } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { markExpired, removeGone } from './marked-objects.ts';
import { sweepOnce } from './sweeper.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

const names = Object.keys(storedKinds) as StoredKindName[];

/** Columns of a kind that the others have not, with their values. */
const own: Readonly<Record<StoredKindName, (provider: SeededProvider) => Readonly<Record<string, unknown>>>> = {
  firewall_rule: ({ prefix }) => ({ dst: '198.18.0.1', subnet: prefix }),
  filter: ({ prefix }) => ({ dst: '198.18.0.1', subnet: prefix, kind: 20 }),
  tunnel: () => ({ endpoint: '192.0.2.9', type: 'GRE' }),
  flowrule: ({ prefix }) => ({ dst: '198.18.0.1', prefix, nlri: newUuid() }),
};

let tunnels = 0;

/** `routed`: by a tunnel; absent: a subnet of its own. */
async function seed(
  { pool }: Database,
  name: StoredKindName,
  provider: SeededProvider,
  { expiresAt = null, routed = `198.18.${++tunnels}.0/24` }: { expiresAt?: Date | null; routed?: string } = {},
): Promise<SeededChange> {
  const uuid = newUuid();
  const columns = { ...own[name](provider), fields: '{"descr":"seeded"}', expires_at: expiresAt };
  const values = Object.values(columns);
  const { rows } = await pool.query(
    `with drawn as (select nextval('change_position') as position), made as (
        insert into ${name} (uuid, owner_uuid, provider_uuid, sequence, change_position, created_at, updated_at,
          ${Object.keys(columns).join(', ')})
        select $1, $2, $2, position, position, now(), now(), ${values.map((_, n) => `$${n + 3}`).join(', ')} from drawn
        returning change_xid, change_position
      ), logged as (
        insert into change (position, kind, object_uuid) select change_position, '${name}', $1 from made
      )
      select change_xid::text as xid, change_position as position from made`,
    [uuid, provider.uuid, ...values],
  );
  if (name === 'tunnel') {
    const values = [uuid, provider.uuid, routed, provider.prefix];
    await pool.query(
      'insert into tunnel_subnet (tunnel_uuid, owner_uuid, routed, subnet) values ($1, $2, $3, $4)',
      values,
    );
  }
  return { uuid, change: rows[0] };
}

async function mark({ pool }: Database, name: StoredKindName, uuid: string): Promise<SeededChange['change']> {
  const { rows } = await pool.query(
    `with ${markingText(name, 'r.uuid = $1')} select change_xid::text as xid, change_position as position from marked`,
    [uuid],
  );
  return rows[0];
}

async function row({ pool }: Database, name: StoredKindName, uuid: string): Promise<'live' | 'marked' | 'gone'> {
  const { rows } = await pool.query(`select deletion_marked_at is not null as marked from ${name} where uuid = $1`, [
    uuid,
  ]);
  return rows.length === 0 ? 'gone' : rows[0].marked ? 'marked' : 'live';
}

async function router({ pool }: Database, name: string): Promise<string> {
  await createLocation(pool, name);
  const made = await createRouter(pool, { name, location: name, tunnelAddresses: [] });
  assert.ok(made.ok);
  assert.ok((await enrolRouter(pool, made.token)).ok);
  return made.router.uuid;
}

async function acknowledge(
  { pool }: Database,
  routerUuid: string,
  change: SeededChange['change'],
  more: Partial<StoredReport> = {},
): Promise<void> {
  const { rows } = await pool.query(`select encode(key_hash, 'hex') as key from router where uuid = $1`, [routerUuid]);
  await saveReports(pool, [
    {
      routerUuid,
      keyHash: rows[0].key,
      cursor: { xid: Number(change.xid), position: change.position },
      enforcement: 'kernel',
      enforcementReason: undefined,
      failures: [],
      counters: undefined,
      status: undefined,
      ...more,
    },
  ]);
}

for (const name of names) {
  test(`an expired ${name} is marked, told to the log and the audit log, and gives back what it held`, async () => {
    const database = await postgres.createDatabase();
    const provider = await seedProvider(database.pool);
    await router(database, 'away');
    const due = await seed(database, name, provider, { expiresAt: new Date(Date.now() - 1_000) });
    const later = await seed(database, name, provider, { expiresAt: new Date(Date.now() + 3_600_000) });
    const stays = await seed(database, name, provider);
    assert.equal(await markExpired(database.pool), 1);
    assert.equal(await row(database, name, due.uuid), 'marked');
    assert.equal(await row(database, name, stays.uuid), 'live');
    assert.equal(await row(database, name, later.uuid), 'live');
    const { rows } = await database.pool.query(
      `select (select array_agg(kind order by position) from change where object_uuid = $1) as changes,
        (select array_agg(operation || ' ' || kind) from audit where object_uuid = $1) as audited,
        (select change_position from ${name} where uuid = $1) as position,
        (select max(position) from change where object_uuid = $1) as logged`,
      [due.uuid],
    );
    assert.deepEqual([rows[0].changes, rows[0].audited], [[name, name], [`expire ${name}`]]);
    assert.equal(rows[0].position, rows[0].logged);
    assert.equal(await markExpired(database.pool), 0, 'nothing expires twice');
  });
}

test('a grant is free as soon as everything that held it is marked, though every row is still there', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  await router(database, 'away');
  const expiresAt = new Date(Date.now() - 1_000);
  const seeded: [StoredKindName, string][] = [];
  for (const name of names) seeded.push([name, (await seed(database, name, provider, { expiresAt })).uuid]);
  // A speaker has it: one that none has goes at once.
  await database.pool.query('update flowrule set applied_position = change_position');
  const drop = () => database.pool.query('delete from subnet where account_uuid = $1', [provider.uuid]);
  await assert.rejects(drop, /foreign key/);
  await sweepOnce(database.pool);
  for (const [name, uuid] of seeded) assert.equal(await row(database, name, uuid), 'marked');
  await drop();
});

test('what a marked tunnel routed can be routed by another at once', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  await router(database, 'away');
  const same = { routed: '198.18.200.0/24' };
  const first = await seed(database, 'tunnel', provider, same);
  await assert.rejects(seed(database, 'tunnel', provider, same), /tunnel_subnet_overlap/);
  await mark(database, 'tunnel', first.uuid);
  await seed(database, 'tunnel', provider, same);
  assert.equal(await row(database, 'tunnel', first.uuid), 'marked');
});

for (const name of names.filter((each) => storedKinds[each].heldByRouters)) {
  test(`a marked ${name} goes when every router has acknowledged the mark, also those that could not enforce it`, async () => {
    const database = await postgres.createDatabase();
    const provider = await seedProvider(database.pool);
    const [able, unable] = [await router(database, 'able'), await router(database, 'unable')];
    const made = await seed(database, name, provider);
    const stays = await seed(database, name, provider);
    const capabilities = ['filter:20', 'tunnel:GRE'];
    await acknowledge(database, able, stays.change, { capabilities });
    await acknowledge(database, unable, stays.change);
    const marked = await mark(database, name, made.uuid);
    await acknowledge(database, able, marked, { capabilities });
    await removeGone(database.pool);
    assert.equal(await row(database, name, made.uuid), 'marked', 'the one that cannot enforce it has not heard of it');
    await acknowledge(database, unable, marked);
    await removeGone(database.pool);
    assert.equal(await row(database, name, made.uuid), 'gone');
    assert.equal(await row(database, name, stays.uuid), 'live');
  });
}

test('a router that is away holds every kind back until it is removed', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const away = await router(database, 'away');
  const marked: [StoredKindName, string][] = [];
  for (const name of names.filter((each) => storedKinds[each].heldByRouters)) {
    const { uuid } = await seed(database, name, provider);
    await mark(database, name, uuid);
    marked.push([name, uuid]);
  }
  assert.equal(await removeGone(database.pool), 0);
  await removeRouter(database.pool, away);
  assert.equal(await removeGone(database.pool), marked.length);
  for (const [name, uuid] of marked) assert.equal(await row(database, name, uuid), 'gone');
});

test('a kind that no router holds is not removed for what routers acknowledge: its own reconciler does it', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const { uuid } = await seed(database, 'flowrule', provider);
  await mark(database, 'flowrule', uuid);
  assert.equal(await removeGone(database.pool), 0);
  assert.equal(await row(database, 'flowrule', uuid), 'marked');
});

test('a kind whose statement fails keeps no other kind waiting, and the failure is told', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const rule = await seed(database, 'firewall_rule', provider);
  const filter = await seed(database, 'filter', provider);
  await mark(database, 'firewall_rule', rule.uuid);
  await mark(database, 'filter', filter.uuid);
  await database.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'no rule goes'; end $$`,
  );
  await database.pool.query(
    'create trigger refuse before delete on firewall_rule for each row execute function refuse()',
  );
  await assert.rejects(sweepOnce(database.pool), /no rule goes/);
  assert.deepEqual(
    [await row(database, 'firewall_rule', rule.uuid), await row(database, 'filter', filter.uuid)],
    ['marked', 'gone'],
  );
});
