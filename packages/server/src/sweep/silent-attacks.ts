/**
 * Ends attacks that nobody has told of for long: the word of the end was lost, and a list of attacks that go on for ever says
 * nothing. They end at their last news; what is told later stands instead (core's attack/placement.ts).
 *
 * Detectors here tell of each attack that goes on every ten seconds, and take over what another one found. So one of theirs is
 * over when a detector has been there for long and none has told of it. While none is there, nobody can know.
 */
import type pg from 'pg';

export const SILENCE_HOURS = 24;
/** Of detectors here, of which one has been there all the time. */
export const DETECTORS_SILENCE_MINUTES = 15;
/** Rows a statement: a transaction of ours stays short. */
const BATCH = 500;

const END = `with due as (
    select uuid from attack
    where ended_at is null and (
      last_reported_at < now() - interval '${SILENCE_HOURS} hours'
      or (source = 'levee' and last_reported_at < now() - interval '${DETECTORS_SILENCE_MINUTES} minutes'
        and exists (select from detector where last_seen_at > now() - interval '1 minute'
          and seen_since < now() - interval '${DETECTORS_SILENCE_MINUTES} minutes')))
    order by last_reported_at limit ${BATCH} for update skip locked
  ), ended as (
    update attack r set ended_at = greatest(r.started_at, r.news_at), end_reason = 'silent',
      updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
      change_xid = pg_current_xact_id(), change_position = nextval('change_position')
    from due where r.uuid = due.uuid returning r.*
  ), audited as (
    insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before, after)
    select 'silence', 'attack', uuid, owner_uuid, provider_uuid, json_build_object('state', 'ongoing'),
      json_build_object('state', 'ended', 'end_reason', end_reason,
        'ended_at', to_char(ended_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    from ended
  )
  insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from ended returning 1`;

/** Returns how many were ended. */
export async function endSilentAttacks(pool: Pick<pg.Pool, 'query'>): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await pool.query({ name: 'sweep_silent_attacks', text: END });
    total += rows.length;
    if (rows.length < BATCH) return total;
  }
}
