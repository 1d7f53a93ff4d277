/** Rows that tests of the reconciler stand on, written by the same kind of statement as a command's. Test code only. */
import { formatAddress } from '@levee/core/net/address.ts';
import { reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import type pg from 'pg';
import { newUuid } from '../../../store/new-uuid.ts';
import type { SeededProvider } from '../../../store/testing/seed.ts';

type Pool = Pick<pg.Pool, 'query'>;

export async function seedZone(
  pool: Pool,
  zone: string,
  driver = 'embedded',
  settings: object = { ttl: 300 },
): Promise<string> {
  const uuid = newUuid();
  const { family, start, end } = reverseZoneFromTrusted(zone).range;
  const ends = [start, end].map((value) => formatAddress({ family, value }));
  await pool.query(
    `with made as (
        insert into rdns_zone (uuid, zone, driver, settings, first_address, last_address, serial)
        values ($1, $2, $3, $4, $5, $6, 1) returning uuid
      )
      insert into change (kind, object_uuid) select 'rdns_zone', uuid from made`,
    [uuid, zone, driver, JSON.stringify(settings), ...ends],
  );
  return uuid;
}

/** Creates the address' record, or changes the one that it has. */
export async function seedRecord(pool: Pool, provider: SeededProvider, address: string, record: string): Promise<void> {
  await pool.query(
    `with drawn as (select nextval('change_position') as position), put as (
        insert into rdns_record (uuid, sequence, owner_uuid, provider_uuid, subnet, address, record, created_at, updated_at,
          change_position)
        select $1, position, $2, $2, $3, $4, $5, now(), now(), position from drawn
        on conflict (address) where deletion_marked_at is null
        do update set record = excluded.record, failure = null, updated_at = now(),
          change_xid = pg_current_xact_id(), change_position = excluded.change_position
        returning uuid, change_position
      )
      insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from put`,
    [newUuid(), provider.uuid, provider.prefix, address, record],
  );
}

export async function seedRecordDeletion(pool: Pool, address: string): Promise<void> {
  await pool.query(
    `with marked as (
        update rdns_record set deletion_marked_at = now(), subnet = null, failure = null,
          change_xid = pg_current_xact_id(), change_position = nextval('change_position')
        where address = $1 and deletion_marked_at is null returning uuid, change_position
      )
      insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from marked`,
    [address],
  );
}

export interface RecordRow {
  readonly address: string;
  readonly record: string;
  readonly deleted: boolean;
  readonly applied: boolean;
  readonly failure: string | null;
  readonly held: boolean;
}

export async function readRecords(pool: Pool): Promise<RecordRow[]> {
  const { rows } = await pool.query<RecordRow>(
    `select host(address) as address, record, deletion_marked_at is not null as deleted, failure,
      held_position is not distinct from change_position as held, applied_position is not distinct from change_position as applied from rdns_record order by address`,
  );
  return rows;
}
