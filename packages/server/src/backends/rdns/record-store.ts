/**
 * The reconciler's statements: the zones, how their DNS servers do, and the records that these are said to have (those
 * that they have yet to take: open-records.ts). Every write makes its entry in the change log. Owns no decision.
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

/** A zone as a worker knows it. */
export interface PlacedZone {
  readonly uuid: string;
  readonly zone: ReverseZone;
}

/** Whether an `rdns_record r` stands in a zone: inside it, and in no narrower one. $1 to $3 are `ownValues`. */
export const ownText = `r.address between $1 and $2 and not exists (
    select from rdns_zone n where n.first_address >= $1 and n.last_address <= $2 and n.uuid <> $3
      and r.address between n.first_address and n.last_address)`;

export function ownValues({ uuid, zone }: PlacedZone): [first: string, last: string, uuid: string] {
  const { family, start, end } = zone.range;
  return [formatAddress({ family, value: start }), formatAddress({ family, value: end }), uuid];
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
  zone: PlacedZone,
  after: string | null,
  limit: number,
): Promise<AppliedRecord[]> {
  const { rows } = await pool.query<AppliedRecord>({
    name: 'rdns_applied',
    text: `select r.uuid::text as uuid, host(r.address) as address, r.record, r.change_position as position
      from rdns_record r
      where r.deletion_marked_at is null and r.applied_position = r.change_position and ${ownText}
        and ($4::inet is null or r.address > $4)
      order by r.address limit $5`,
    values: [...ownValues(zone), after, limit],
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
