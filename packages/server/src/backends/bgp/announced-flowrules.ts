/**
 * The reconciler's statements on flowrules: what is to be announced, what the speaker may have, and what became of it.
 * Every write that changes a state makes its entry in the change log. Owns no decision.
 *
 * `applied_position` is written before a rule is announced: from then on the row stays until the route is withdrawn.
 * `applied_at` is written when the speaker has taken it.
 */
import type pg from 'pg';

type Pool = Pick<pg.Pool, 'query'>;

export interface StoredFlowrule {
  readonly uuid: string;
  readonly position: number;
  readonly dst: string;
  /** As it was stored; anybody may have written it. */
  readonly fields: unknown;
  /** Live, not held, not expired. */
  readonly wanted: boolean;
  readonly deleted: boolean;
  /** Inside a prefix that its provider has at this moment. */
  readonly isProtected: boolean;
  /** The speaker may have it, or something of it. */
  readonly applied: boolean;
  /** The speaker has taken the present change. */
  readonly confirmed: boolean;
  readonly failure: string | null;
}

const columns = `r.uuid::text as uuid, r.change_position as position, r.dst::text as dst, r.fields,
  r.deletion_marked_at is null and r.held is null and (r.expires_at is null or r.expires_at > now()) as wanted,
  r.deletion_marked_at is not null as deleted,
  exists (select from subnet p where p.role = 'provider' and p.account_uuid = r.provider_uuid and p.subnet >>= r.dst)
    as "isProtected",
  r.applied_position is not null as applied,
  r.applied_position is not distinct from r.change_position and r.applied_at is not null as confirmed, r.failure`;

/** All that is to be announced or may have been, as of one moment. */
export async function loadAll(pool: Pool): Promise<StoredFlowrule[]> {
  const text = `select ${columns} from flowrule r
    where (r.deletion_marked_at is null and r.held is null) or r.applied_position is not null
    order by r.change_position`;
  return (await pool.query<StoredFlowrule>({ name: 'bgp_all', text })).rows;
}

/** These, and the live ones that are the same routes. */
export async function loadSome(pool: Pool, uuids: readonly string[]): Promise<StoredFlowrule[]> {
  const text = `select ${columns} from flowrule r
    where r.uuid = any($1::uuid[]) or (r.deletion_marked_at is null
      and r.nlri in (select o.nlri from flowrule o where o.uuid = any($1::uuid[])))
    order by r.change_position`;
  return (await pool.query<StoredFlowrule>({ name: 'bgp_some', text, values: [uuids] })).rows;
}

export interface RowAt {
  readonly uuid: string;
  readonly position: number;
}

const split = (rows: readonly RowAt[]) => [rows.map(({ uuid }) => uuid), rows.map(({ position }) => position)];

/** Returns those that may still be announced: unchanged, and still inside protected space. */
export async function saveIntent(pool: Pool, rows: readonly RowAt[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set();
  const { rows: kept } = await pool.query<{ uuid: string }>({
    name: 'bgp_intent',
    text: `update flowrule r set applied_position = l.position, applied_at = null
      from unnest($1::uuid[], $2::int8[]) l (uuid, position)
      where r.uuid = l.uuid and r.change_position = l.position and r.deletion_marked_at is null and r.held is null
        and exists (
          select from subnet p where p.role = 'provider' and p.account_uuid = r.provider_uuid and p.subnet >>= r.dst)
      returning r.uuid::text as uuid`,
    values: split(rows),
  });
  return new Set(kept.map(({ uuid }) => uuid));
}

/** The speaker has taken them. */
export async function saveTaken(pool: Pool, rows: readonly RowAt[]): Promise<void> {
  if (rows.length === 0) return;
  await pool.query({
    name: 'bgp_taken',
    text: `with taken as (
        update flowrule r set applied_position = l.position, failure = null,
          applied_at = date_trunc('milliseconds', clock_timestamp())
        from unnest($1::uuid[], $2::int8[]) l (uuid, position)
        where r.uuid = l.uuid and r.change_position = l.position
        returning r.uuid
      )
      insert into change (kind, object_uuid) select 'flowrule', uuid from taken`,
    values: split(rows),
  });
}

export interface Refusal extends RowAt {
  readonly reason: string;
}

/** They are not announced: nobody has anything of them. */
export async function saveRefused(pool: Pool, refusals: readonly Refusal[]): Promise<void> {
  if (refusals.length === 0) return;
  await pool.query({
    name: 'bgp_refused',
    text: `with refused as (
        update flowrule r set applied_position = null, applied_at = null, failure = l.reason
        from unnest($1::uuid[], $2::int8[], $3::text[]) l (uuid, position, reason)
        where r.uuid = l.uuid and r.change_position = l.position
          and (r.failure is distinct from l.reason or r.applied_position is not null)
        returning r.uuid
      )
      insert into change (kind, object_uuid) select 'flowrule', uuid from refused`,
    values: [...split(refusals), refusals.map(({ reason }) => reason)],
  });
}

/** Their routes are withdrawn: marked rows go, others may be announced again. */
export async function saveWithdrawn(pool: Pool, rows: readonly RowAt[]): Promise<void> {
  if (rows.length === 0) return;
  await pool.query({
    name: 'bgp_withdrawn',
    text: `with told (uuid, position) as (select * from unnest($1::uuid[], $2::int8[])), gone as (
        delete from flowrule r using told
        where r.uuid = told.uuid and r.change_position = told.position and r.deletion_marked_at is not null
        returning r.uuid
      ), freed as (
        update flowrule r set applied_position = null, applied_at = null, failure = null from told
        where r.uuid = told.uuid and r.change_position = told.position and r.deletion_marked_at is null
        returning r.uuid
      )
      insert into change (kind, object_uuid) select 'flowrule', uuid from gone union all select 'flowrule', uuid from freed`,
    values: split(rows),
  });
}
