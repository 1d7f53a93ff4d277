/**
 * Forgets events that are older than clients may resume from. Those that a webhook's delivery still shows stay until that
 * goes (backends/webhook/), but no stream shows them. For the leader alone.
 */
import type pg from 'pg';

export const KEEP_EVENTS_SECONDS = 24 * 3600;
/** Events a statement: a transaction of ours stays short. */
const AT_ONCE = 5_000;

/** In order of their sequence, which is that of their age: the first that is kept ends it. */
const PRUNE = `with old as (
    select sequence, at < now() - make_interval(secs => $1) as due from event
    where sequence > (select floor from event_log) order by sequence limit ${AT_ONCE}
  ), due as (
    select sequence from old where due
      and sequence < coalesce((select min(sequence) from old where not due), 9223372036854775807)
  ), raised as (
    update event_log set floor = (select max(sequence) from due) where exists (select from due)
  ), gone as (
    delete from event e using due where e.sequence = due.sequence
      and not exists (select from webhook_delivery d where d.event_sequence = e.sequence)
  )
  select count(*) as count from due`;

/** Returns how many fell out of what streams show. */
export async function pruneEvents(
  pool: Pick<pg.Pool, 'query'>,
  signal?: AbortSignal,
  keepSeconds = KEEP_EVENTS_SECONDS,
): Promise<number> {
  let pruned = 0;
  for (let more = true; more && !signal?.aborted; ) {
    const { rows } = await pool.query<{ count: number }>({ name: 'events_prune', text: PRUNE, values: [keepSeconds] });
    const count = rows[0]?.count ?? 0;
    pruned += count;
    more = count === AT_ONCE;
  }
  return pruned;
}

/** Of a stretch of those that were kept for deliveries alone. */
const RELEASED = `with stretch as (
    select sequence from event where sequence > $1 and sequence <= (select floor from event_log)
    order by sequence limit ${AT_ONCE}
  ), gone as (
    delete from event e using stretch s where e.sequence = s.sequence
      and not exists (select from webhook_delivery d where d.event_sequence = e.sequence)
  )
  select count(*) as count, coalesce(max(sequence), 0) as last from stretch`;

/** A look at all of them must not cost the more the more are kept. */
const STRETCHES_AT_ONCE = 20;

/** Forgets those whose last delivery is gone. Looks at some of them, from `after` on, and returns where to go on. */
export async function pruneReleased(
  pool: Pick<pg.Pool, 'query'>,
  after: number,
  signal?: AbortSignal,
): Promise<number> {
  let looked = after;
  for (let stretch = 0; stretch < STRETCHES_AT_ONCE && !signal?.aborted; stretch++) {
    const { rows } = await pool.query<{ count: number; last: number }>({
      name: 'events_prune_released',
      text: RELEASED,
      values: [looked],
    });
    const { count = 0, last = 0 } = rows[0] ?? {};
    if (count < AT_ONCE) return 0;
    looked = last;
  }
  return looked;
}
