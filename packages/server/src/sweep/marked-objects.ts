/**
 * Marks objects of every kind that have expired, and removes those that nothing holds any more. What marking means for a
 * kind, and what keeps its rows, is store/stored-kinds.ts' to say; when it is done, the sweeper's.
 */
import type pg from 'pg';
import { markingText, type StoredKind, storedKinds } from '../store/stored-kinds.ts';

/** Rows a statement: a transaction of ours stays short. */
const BATCH = 500;

interface NamedText {
  readonly name: string;
  readonly text: string;
}

const kinds = Object.values(storedKinds);

const EXPIRED: readonly NamedText[] = kinds.map(({ name }) => ({
  name: `sweep_expired_${name}`,
  text: `with due as (
      select uuid from ${name} where expires_at <= now() and deletion_marked_at is null
      order by expires_at limit ${BATCH} for update skip locked
    ), ${markingText(name, 'r.uuid = due.uuid', 'due', 'expire')}
    select 1 from marked`,
}));

/** Returns how many were marked. */
export function markExpired(pool: pg.Pool): Promise<number> {
  return runAll(pool, EXPIRED);
}

/** The first moment at which an object expires that is not marked; null: none will. */
export const EARLIEST_EXPIRY = `least(${kinds
  .map(
    ({ name }) => `(select min(expires_at) from ${name} where expires_at is not null and deletion_marked_at is null)`,
  )
  .join(', ')})`;

/**
 * An object that is marked goes when every enrolled router has acknowledged a place at or after its marking, whether or
 * not it was able to enforce it: what it has acknowledged it does not hold. A router that was enrolled and is away holds
 * it back, because it may still enforce it; so does one that cannot take away the table that it left in its kernel,
 * whatever it acknowledged. Removing the router frees it.
 */
function goneText({ name, keptWhile }: StoredKind): string {
  return `with low as (
      select case when not table_left then acked_xid end as xid, acked_position as position
      from router where enrolled_at is not null
      order by 1 nulls first, 2 limit 1
    ), due as (
      select uuid from ${name} r
      where deletion_marked_at is not null
        and not exists (
          select from low where low.xid is null or (low.xid, low.position) < (r.change_xid, r.change_position)
        )
        and r.change_xid < pg_snapshot_xmin(pg_current_snapshot())
        ${keptWhile === undefined ? '' : `and not ${keptWhile}`}
      order by change_xid, change_position limit ${BATCH} for update skip locked
    )
    delete from ${name} r using due where r.uuid = due.uuid returning 1`;
}

const GONE: readonly NamedText[] = kinds
  .filter(({ heldByRouters }) => heldByRouters)
  .map((kind) => ({ name: `sweep_gone_${kind.name}`, text: goneText(kind) }));

/** Returns how many went. */
export function removeGone(pool: pg.Pool): Promise<number> {
  return runAll(pool, GONE);
}

/** A kind whose statement fails does not hold the others up; the first failure is thrown when all had their turn. */
async function runAll(pool: pg.Pool, statements: readonly NamedText[]): Promise<number> {
  let total = 0;
  const failures: unknown[] = [];
  for (const statement of statements) {
    try {
      for (let count = BATCH; count === BATCH; total += count) {
        count = (await pool.query(statement)).rows.length;
      }
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return total;
}
