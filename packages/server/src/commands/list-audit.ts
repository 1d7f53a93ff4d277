/**
 * Reads the audit log in chunks, for whoever may see which part of it: an operator all, a provider what concerns its own
 * and its users' objects, a user what concerns its own; each also what it did itself. Owns that choice and the order:
 * (xid, sequence), below the transaction horizon, as the change log is read. What of an entry is shown to whom is http's.
 */
import type pg from 'pg';
import type { Caller } from './caller.ts';
import { readAhead } from './read-ahead.ts';

export interface AuditFilter {
  readonly objectUuid?: string | undefined;
  readonly kind?: string | undefined;
  readonly operation?: string | undefined;
  readonly actorUuid?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Only entries that came into the log after the one with this sequence. */
  readonly afterSequence?: number | undefined;
  readonly newestFirst: boolean;
}

export interface AuditRow extends Place {
  readonly at: Date;
  readonly actor_uuid: string | null;
  readonly actor_role: string | null;
  readonly key_uuid: string | null;
  readonly source: string | null;
  readonly request_id: string | null;
  readonly operation: string;
  readonly kind: string;
  readonly object_uuid: string;
  readonly owner_uuid: string | null;
  /** JSON texts. */
  readonly before: string | null;
  readonly after: string | null;
}

interface Place {
  readonly xid: string;
  readonly sequence: number;
}

/**
 * `from`: only entries behind the one with this sequence, in the order asked for; 0: from the beginning. Never yields an
 * empty chunk. Throws what the driver throws.
 */
export async function* auditChunks(
  pool: Pick<pg.Pool, 'query'>,
  caller: Pick<Caller, 'accountUuid' | 'role'>,
  filter: AuditFilter,
  from: number,
): AsyncGenerator<readonly AuditRow[], void, undefined> {
  const stretch = await stretchOf(pool, filter);
  if (stretch === undefined) return;
  const after = await placeOf(pool, filter.afterSequence);
  const begin = await placeOf(pool, from);
  // An entry that is forgotten was among the oldest: behind it are all that are kept, and before it is none.
  if (begin === undefined && from > 0 && filter.newestFirst) return;
  yield* readAhead<AuditRow>(async (last, limit) => {
    const behind = last ?? begin;
    return (await pool.query<AuditRow>(auditStatement(caller, filter, { stretch, after, behind }, limit))).rows;
  });
}

/** Undefined: there is no such entry, or none was asked for. */
async function placeOf(pool: Pick<pg.Pool, 'query'>, sequence: number | undefined): Promise<Place | undefined> {
  if (sequence === undefined || sequence === 0) return undefined;
  const text = 'select xid::text as xid, sequence from audit where sequence = $1';
  return (await pool.query<Place>({ name: 'audit_place', text, values: [sequence] })).rows[0];
}

interface Stretch {
  readonly first: string;
  readonly last: string;
}

/**
 * The transactions in which the entries of that time are. Asked once: the clock may have been set back, so that no single
 * entry tells where a time begins. Undefined: there is none. Null: no time was asked for.
 */
async function stretchOf(
  pool: Pick<pg.Pool, 'query'>,
  { since, until }: AuditFilter,
): Promise<Stretch | null | undefined> {
  if (since === undefined && until === undefined) return null;
  const { rows } = await pool.query<{ first: string | null; last: string | null }>({
    name: 'audit_stretch',
    text: `select min(xid)::text as first, max(xid)::text as last from audit
      where written_at >= coalesce($1::timestamptz, '-infinity') and written_at < coalesce($2::timestamptz, 'infinity')`,
    values: [since ?? null, until ?? null],
  });
  const { first = null, last = null } = rows[0] ?? {};
  return first === null || last === null ? undefined : { first, last };
}

interface Part {
  readonly stretch: Stretch | null;
  /** In the log's order, whatever the list's is. */
  readonly after: Place | undefined;
  /** In the list's order. */
  readonly behind: Place | undefined;
}

/** Not named: which conditions there are changes from request to request. */
function auditStatement(
  { accountUuid, role }: Pick<Caller, 'accountUuid' | 'role'>,
  filter: AuditFilter,
  { stretch, after, behind }: Part,
  limit: number,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const { objectUuid, kind, operation, actorUuid, since, until, newestFirst } = filter;
  const place = ({ xid, sequence }: Place) => `(${parameter(xid)}::xid8, ${parameter(sequence)}::int8)`;
  const conditions = ['a.xid < pg_snapshot_xmin(pg_current_snapshot())'];
  if (behind !== undefined) conditions.push(`(a.xid, a.sequence) ${newestFirst ? '<' : '>'} ${place(behind)}`);
  if (after !== undefined) conditions.push(`(a.xid, a.sequence) > ${place(after)}`);
  if (objectUuid !== undefined) conditions.push(`a.object_uuid = ${parameter(objectUuid)}::uuid`);
  if (kind !== undefined) conditions.push(`a.kind = ${parameter(kind)}`);
  if (operation !== undefined) conditions.push(`a.operation = ${parameter(operation)}`);
  if (actorUuid !== undefined) conditions.push(`a.actor_uuid = ${parameter(actorUuid)}::uuid`);
  if (since !== undefined) conditions.push(`a.written_at >= ${parameter(since)}::timestamptz`);
  if (until !== undefined) conditions.push(`a.written_at < ${parameter(until)}::timestamptz`);
  if (stretch !== null) {
    conditions.push(`a.xid between ${parameter(stretch.first)}::xid8 and ${parameter(stretch.last)}::xid8`);
  }
  const direction = newestFirst ? 'desc' : 'asc';
  const order = `order by xid ${direction}, sequence ${direction} limit ${parameter(limit)}`;
  const part = (...more: string[]) =>
    `(select a.* from audit a where ${[...conditions, ...more].join(' and ')} ${order})`;
  const self = role === 'operator' ? undefined : parameter(accountUuid);
  const column = role === 'provider' ? 'provider_uuid' : 'owner_uuid';
  // Two parts, each in the order of an index of its own: an "or" would have all of them read and sorted.
  const seen =
    self === undefined
      ? part()
      : `${part(`a.${column} = ${self}::uuid`)}
        union all ${part(`a.actor_uuid = ${self}::uuid`, 'a.actor_uuid is distinct from a.owner_uuid', `a.${column} is distinct from ${self}::uuid`)}`;
  const text = `select e.xid::text as xid, e.sequence, e.at, e.actor_uuid::text as actor_uuid, e.actor_role, e.key_uuid::text as key_uuid,
      host(e.source) as source, e.request_id, e.operation, e.kind, e.object_uuid::text as object_uuid,
      e.owner_uuid::text as owner_uuid, e.before::text as before, e.after::text as after
    from (select * from (${seen}) u ${order}) e
    order by e.xid ${direction}, e.sequence ${direction}`;
  return { text, values };
}
