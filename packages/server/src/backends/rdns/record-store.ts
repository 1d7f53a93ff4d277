/**
 * The reconciler's statements: which records a DNS server has yet to take, what it took, how it does. Every write makes its
 * entry in the change log. Owns no decision.
 *
 * What marks a record in the DNS as ours is its row here: an address that has one, live or marked for deletion, is a name
 * whose PTR records Levee writes. Names without a row are never written.
 */
import { formatAddress } from '@levee/core/net/address.ts';
import type { ReverseZone } from '@levee/core/rdns/reverse-name.ts';
import type { ZoneDriver, ZoneDriverSettings } from '@levee/core/rdns/zone-settings.ts';
import type pg from 'pg';

export interface StoredZone {
  readonly uuid: string;
  readonly zone: string;
  readonly driver: ZoneDriver;
  readonly settings: ZoneDriverSettings;
  /** Of an embedded zone: its SOA serial, and where in the log it was announced. */
  readonly serial: number;
  readonly serialPosition: number;
  readonly trouble: 'away' | 'refused' | null;
  readonly lastError: string | null;
}

type Pool = Pick<pg.Pool, 'query'>;

const zonesText = `select uuid::text as uuid, zone, driver, settings, serial, serial_position as "serialPosition", trouble,
  last_error as "lastError" from rdns_zone order by created_at, uuid`;

export async function loadStoredZones(pool: Pool): Promise<StoredZone[]> {
  return (await pool.query<StoredZone>({ name: 'rdns_stored_zones', text: zonesText })).rows;
}

/** One record that its server does not have as it is here. */
export interface OpenRecord {
  readonly uuid: string;
  readonly address: string;
  readonly changePosition: number;
  readonly deleted: boolean;
  /** What is to stand there now: of a deleted record, what its successor says. */
  readonly target: string | null;
  readonly failure: string | null;
}

function endsOf({ range: { family, start, end } }: ReverseZone): [first: string, last: string] {
  return [formatAddress({ family, value: start }), formatAddress({ family, value: end })];
}

/** In order of their changes, after the one with that position; also of the narrower zones inside. */
export async function loadOpen(
  pool: Pool,
  zone: ReverseZone,
  failed: boolean,
  after: number,
  limit: number,
): Promise<OpenRecord[]> {
  const { rows } = await pool.query<OpenRecord>({
    name: 'rdns_open',
    text: `select r.uuid::text as uuid, host(r.address) as address, r.change_position as "changePosition",
        r.deletion_marked_at is not null as deleted, r.failure,
        (select l.record from rdns_record l where l.address = r.address and l.deletion_marked_at is null) as target
      from rdns_record r
      where r.applied_position is distinct from r.change_position and r.address between $1 and $2
        and (r.failure is not null) = $3 and r.change_position > $4
      order by r.change_position limit $5`,
    values: [...endsOf(zone), failed, after, limit],
  });
  return rows;
}

export interface Taken {
  readonly uuid: string;
  /** The change that was carried out. */
  readonly position: number;
  /** Why it was not. */
  readonly failure: string | null;
}

/** A deleted record that the server let go of is no more. Says how many rows are different. */
export async function saveTaken(pool: Pool, taken: readonly Taken[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>({
    name: 'rdns_taken',
    text: `with taken as (
        select * from unnest($1::uuid[], $2::int8[], $3::text[]) t (uuid, position, failure)
      ), gone as (
        delete from rdns_record r using taken t
        where r.uuid = t.uuid and t.failure is null and r.change_position = t.position and r.deletion_marked_at is not null
        returning r.uuid
      ), kept as (
        update rdns_record r set failure = t.failure,
          applied_position = case when t.failure is null then t.position else r.applied_position end,
          applied_at = case when t.failure is null then date_trunc('milliseconds', clock_timestamp()) else r.applied_at end
        from taken t
        where r.uuid = t.uuid and (t.failure is not null or r.deletion_marked_at is null)
          and r.change_position = t.position
          and (t.failure is distinct from r.failure or r.applied_position is distinct from t.position)
        returning r.uuid
      ), logged as (
        insert into change (kind, object_uuid)
        select 'rdns', uuid from (select uuid from gone union all select uuid from kept) changed returning 1
      )
      select count(*) as count from logged`,
    values: [taken.map(({ uuid }) => uuid), taken.map(({ position }) => position), taken.map(({ failure }) => failure)],
  });
  return rows[0]?.count ?? 0;
}

/** A record that its server is said to have. */
export interface AppliedRecord {
  readonly uuid: string;
  readonly address: string;
  readonly record: string;
  readonly position: number;
}

export async function loadApplied(
  pool: Pool,
  zone: ReverseZone,
  after: string | null,
  limit: number,
): Promise<AppliedRecord[]> {
  const { rows } = await pool.query<AppliedRecord>({
    name: 'rdns_applied',
    text: `select uuid::text as uuid, host(address) as address, record, change_position as position
      from rdns_record
      where deletion_marked_at is null and applied_position = change_position and address between $1 and $2
        and ($3::inet is null or address > $3)
      order by address limit $4`,
    values: [...endsOf(zone), after, limit],
  });
  return rows;
}

/** The server has something else there, or nothing: to be applied again. */
export async function reopen(pool: Pool, records: readonly AppliedRecord[]): Promise<void> {
  await pool.query({
    name: 'rdns_reopen',
    text: `with lost as (
        update rdns_record r set applied_position = null, applied_at = null
        from unnest($1::uuid[], $2::int8[]) l (uuid, position)
        where r.uuid = l.uuid and r.change_position = l.position and r.applied_position = l.position
        returning r.uuid
      )
      insert into change (kind, object_uuid) select 'rdns', uuid from lost`,
    values: [records.map(({ uuid }) => uuid), records.map(({ position }) => position)],
  });
}

export interface ZoneStanding {
  readonly trouble: 'away' | 'refused' | null;
  /** Of the trouble, or of a record that was refused; null: nothing new to say. */
  readonly error: string | null;
}

/** An entry is made when the trouble begins, changes or ends; that it goes on, or all is well, is only noted. */
export async function saveStanding(pool: Pool, uuid: string, { trouble, error }: ZoneStanding): Promise<void> {
  await pool.query({
    name: 'rdns_standing',
    text: `with old as (select uuid, trouble, last_error, checked_at from rdns_zone where uuid = $1 for update),
      noted as (
        update rdns_zone z set checked_at = date_trunc('milliseconds', clock_timestamp()), trouble = $2,
          trouble_since = case when $2::text is null then null
            when old.trouble is not null then z.trouble_since
            else date_trunc('milliseconds', clock_timestamp()) end,
          last_error = coalesce($3, z.last_error),
          last_error_at = case when $3::text is null then z.last_error_at
            else date_trunc('milliseconds', clock_timestamp()) end
        from old where z.uuid = old.uuid
        returning z.uuid, old.trouble as former, old.checked_at as formerly, old.last_error as former_error
      )
      insert into change (kind, object_uuid)
      select 'rdns_zone', uuid from noted
      where former is distinct from $2::text or formerly is null
        or ($2::text is not null and former_error is distinct from $3::text)`,
    values: [uuid, trouble, error],
  });
}

/** Marked records that no zone covers any more: there is no server that could let go of them. */
export async function removeOrphans(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>({
    name: 'rdns_orphans',
    text: `with gone as (
        delete from rdns_record r
        where deletion_marked_at is not null
          and not exists (select from rdns_zone z where r.address between z.first_address and z.last_address)
        returning uuid
      ), logged as (insert into change (kind, object_uuid) select 'rdns', uuid from gone returning 1)
      select count(*) as count from logged`,
  });
  return rows[0]?.count ?? 0;
}

/** The present state of records, for whoever follows the log. */
export interface PresentRecord {
  readonly uuid: string;
  readonly address: string;
  readonly record: string;
  readonly deleted: boolean;
  readonly open: boolean;
  readonly changePosition: number;
  readonly appliedPosition: number | null;
  readonly failure: string | null;
}

const presentColumns = `uuid::text as uuid, host(address) as address, record, deletion_marked_at is not null as deleted,
  applied_position is distinct from change_position as open, change_position as "changePosition",
  applied_position as "appliedPosition", failure`;

export async function loadPresent(pool: Pool, uuids: readonly string[]): Promise<PresentRecord[]> {
  const text = `select ${presentColumns} from rdns_record where uuid = any($1::uuid[])`;
  return (await pool.query<PresentRecord>({ name: 'rdns_present', text, values: [uuids] })).rows;
}

/** All zones and all live records, as of one moment. */
export async function loadAllLive(
  pool: Pick<pg.Pool, 'connect'>,
): Promise<{ readonly stored: readonly StoredZone[]; readonly records: readonly PresentRecord[] }> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin transaction isolation level repeatable read read only');
    const stored = (await client.query<StoredZone>(zonesText)).rows;
    const text = `select ${presentColumns} from rdns_record r where deletion_marked_at is null
      and exists (select from rdns_zone z where z.driver = 'embedded' and r.address between z.first_address and z.last_address)`;
    const records = (await client.query<PresentRecord>(text)).rows;
    return { stored, records };
  } finally {
    await client.query('commit').catch((error: Error) => {
      broken = error;
    });
    client.release(broken);
  }
}

/** The next serial of an embedded zone; gives the position of the entry that announces it. Undefined: no such zone. */
export async function giveSerial(pool: Pool, uuid: string): Promise<number | undefined> {
  const { rows } = await pool.query<{ position: number }>({
    name: 'rdns_serial',
    text: `with drawn as (select nextval('change_position') as position), given as (
        update rdns_zone set serial = greatest(serial + 1, extract(epoch from clock_timestamp())::int8),
          serial_position = drawn.position
        from drawn where uuid = $1 returning uuid, drawn.position
      )
      insert into change (position, kind, object_uuid) select position, 'rdns_zone', uuid from given returning position`,
    values: [uuid],
  });
  return rows[0]?.position;
}
