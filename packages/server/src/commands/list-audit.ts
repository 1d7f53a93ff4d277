/**
 * Reads the audit log in chunks, for whoever may see which part of it: an operator all, a provider what concerns its own
 * and its users' objects, a user what concerns its own; each also what it did itself. Owns that choice; what of an entry
 * is shown to whom is http's.
 */
import type pg from 'pg';
import type { Caller } from './caller.ts';

export interface AuditFilter {
  readonly objectUuid?: string | undefined;
  readonly kind?: string | undefined;
  readonly operation?: string | undefined;
  readonly actorUuid?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  readonly newestFirst: boolean;
}

export interface AuditRow {
  readonly sequence: number;
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

/** Small, so that the first bytes leave soon. */
const firstChunk = 250;
const laterChunk = 2000;

/**
 * `after`: only entries behind this sequence, in the order asked for; 0: from the beginning. Never yields an empty
 * chunk. Throws what the driver throws.
 */
export async function* auditChunks(
  pool: Pick<pg.Pool, 'query'>,
  caller: Pick<Caller, 'accountUuid' | 'role'>,
  filter: AuditFilter,
  after: number,
): AsyncGenerator<readonly AuditRow[], void, undefined> {
  const stretch = await stretchOf(pool, filter);
  if (stretch === undefined) return;
  const begin = after === 0 && filter.newestFirst ? Number.MAX_SAFE_INTEGER : after;
  const load = async (from: number, limit: number) =>
    (await pool.query<AuditRow>(auditStatement(caller, filter, stretch, from, limit))).rows;
  let limit = firstChunk;
  let rows = await load(begin, limit);
  while (rows.length > 0) {
    const last = rows.at(-1);
    const next = last !== undefined && rows.length === limit ? load(last.sequence, laterChunk) : undefined;
    // A chunk that is fetched ahead may fail while nobody waits for it; whoever waits later still gets the error.
    next?.catch(() => {});
    yield rows;
    if (next === undefined) return;
    limit = laterChunk;
    rows = await next;
  }
}

interface Stretch {
  readonly first: number;
  readonly last: number;
}

/**
 * The part of the sequence in which the entries of that time are. Asked once: the clock may have been set back, so that
 * no single entry tells where a time begins. Undefined: there is none.
 */
async function stretchOf(pool: Pick<pg.Pool, 'query'>, { since, until }: AuditFilter): Promise<Stretch | undefined> {
  if (since === undefined && until === undefined) return { first: 0, last: Number.MAX_SAFE_INTEGER };
  const { rows } = await pool.query<{ first: number | null; last: number | null }>({
    name: 'audit_stretch',
    text: `select min(sequence) as first, max(sequence) as last from audit
      where at >= coalesce($1::timestamptz, '-infinity') and at < coalesce($2::timestamptz, 'infinity')`,
    values: [since ?? null, until ?? null],
  });
  const { first = null, last = null } = rows[0] ?? {};
  return first === null || last === null ? undefined : { first, last };
}

/** Not named: which conditions there are changes from request to request. */
function auditStatement(
  { accountUuid, role }: Pick<Caller, 'accountUuid' | 'role'>,
  filter: AuditFilter,
  stretch: Stretch,
  from: number,
  limit: number,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const { objectUuid, kind, operation, actorUuid, since, until, newestFirst } = filter;
  const conditions = [`a.sequence ${newestFirst ? '<' : '>'} ${parameter(from)}::int8`];
  if (objectUuid !== undefined) conditions.push(`a.object_uuid = ${parameter(objectUuid)}::uuid`);
  if (kind !== undefined) conditions.push(`a.kind = ${parameter(kind)}`);
  if (operation !== undefined) conditions.push(`a.operation = ${parameter(operation)}`);
  if (actorUuid !== undefined) conditions.push(`a.actor_uuid = ${parameter(actorUuid)}::uuid`);
  if (since !== undefined) conditions.push(`a.at >= ${parameter(since)}::timestamptz`);
  if (until !== undefined) conditions.push(`a.at < ${parameter(until)}::timestamptz`);
  if (since !== undefined || until !== undefined) {
    conditions.push(`a.sequence between ${parameter(stretch.first)}::int8 and ${parameter(stretch.last)}::int8`);
  }
  const order = `order by sequence ${newestFirst ? 'desc' : 'asc'} limit ${parameter(limit)}`;
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
  const text = `select e.sequence, e.at, e.actor_uuid::text as actor_uuid, e.actor_role, e.key_uuid::text as key_uuid,
      host(e.source) as source, e.request_id, e.operation, e.kind, e.object_uuid::text as object_uuid,
      e.owner_uuid::text as owner_uuid, e.before::text as before, e.after::text as after
    from (select * from (${seen}) u ${order}) e ${order.replace(/ limit.*/, '')}`;
  return { text, values };
}
