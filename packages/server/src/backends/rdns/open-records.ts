/**
 * The statements about records that their DNS server has yet to take: which there are, and what became of them. Three
 * kinds, of which one must never hold up another: fresh ones; those held, whose change was sent together with refused
 * ones and has not been tried apart; those that failed. Every write makes its entry in the change log. Owns no decision.
 */
import type pg from 'pg';
import { ownText, ownValues, type PlacedZone } from './record-store.ts';

type Pool = Pick<pg.Pool, 'query'>;

/** One record that its server does not have as it is here. */
export interface OpenRecord {
  readonly uuid: string;
  readonly address: string;
  readonly changePosition: number;
  /** What is to stand there now: of a deleted record, what its successor says. */
  readonly target: string | null;
}

export type Doubtful = 'held' | 'failed';

const kindText = {
  fresh: 'r.failure is null and r.held_position is distinct from r.change_position',
  held: 'r.failure is null and r.held_position = r.change_position',
  failed: 'r.failure is not null',
} as const;

const whereText = (kind: keyof typeof kindText) =>
  `where r.applied_position is distinct from r.change_position and ${ownText} and ${kindText[kind]}`;

const openColumns = `r.uuid::text as uuid, host(r.address) as address, r.change_position as "changePosition",
  (select l.record from rdns_record l where l.address = r.address and l.deletion_marked_at is null) as target`;

/** In order of their changes, after the one with that position. */
export async function loadFresh(pool: Pool, zone: PlacedZone, after: number, limit: number): Promise<OpenRecord[]> {
  const { rows } = await pool.query<OpenRecord>({
    name: 'rdns_fresh',
    text: `select ${openColumns} from rdns_record r ${whereText('fresh')} and r.change_position > $4
      order by r.change_position limit $5`,
    values: [...ownValues(zone), after, limit],
  });
  return rows;
}

/** Whose records come next after that account's, all round; undefined: there are none. */
export async function nextOwner(
  pool: Pool,
  zone: PlacedZone,
  kind: Doubtful,
  after: string | undefined,
): Promise<string | undefined> {
  const { rows } = await pool.query<{ owner: string }>({
    name: `rdns_next_${kind}`,
    text: `select r.owner_uuid::text as owner from rdns_record r ${whereText(kind)}
      order by ($4::uuid is null or r.owner_uuid > $4) desc, r.owner_uuid limit 1`,
    values: [...ownValues(zone), after ?? null],
  });
  return rows[0]?.owner;
}

/** Of one account, in order of their changes, after the one with that position. */
export async function loadDoubtful(
  pool: Pool,
  zone: PlacedZone,
  kind: Doubtful,
  owner: string,
  after: number,
  limit: number,
): Promise<OpenRecord[]> {
  const { rows } = await pool.query<OpenRecord>({
    name: `rdns_${kind}`,
    text: `select ${openColumns} from rdns_record r ${whereText(kind)} and r.owner_uuid = $4 and r.change_position > $5
      order by r.change_position limit $6`,
    values: [...ownValues(zone), owner, after, limit],
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

export async function saveHeld(pool: Pool, records: readonly OpenRecord[]): Promise<void> {
  await pool.query({
    name: 'rdns_hold',
    text: `with held as (
        update rdns_record r set held_position = h.position
        from unnest($1::uuid[], $2::int8[]) h (uuid, position)
        where r.uuid = h.uuid and r.change_position = h.position and r.held_position is distinct from h.position
        returning r.uuid
      )
      insert into change (kind, object_uuid) select 'rdns', uuid from held`,
    values: [records.map(({ uuid }) => uuid), records.map(({ changePosition }) => changePosition)],
  });
}
