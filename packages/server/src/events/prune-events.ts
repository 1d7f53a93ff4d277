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
export async function pruneEvents(pool: Pick<pg.Pool, 'query'>, keepSeconds = KEEP_EVENTS_SECONDS): Promise<number> {
  let pruned = 0;
  for (let more = true; more; ) {
    const { rows } = await pool.query<{ count: number }>({ name: 'events_prune', text: PRUNE, values: [keepSeconds] });
    const count = rows[0]?.count ?? 0;
    pruned += count;
    more = count === AT_ONCE;
  }
  return pruned;
}
