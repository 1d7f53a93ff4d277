/**
 * Forgets what was kept of attacks beside the attacks themselves: timeline, packets, profile. By age, and in all: however many
 * attacks there are, the newest have theirs. The attacks stay, with their times and peaks.
 */
import type pg from 'pg';

/** Rows of the timeline and packets, over all attacks: about 1.5 GB (decision 0150). */
export const MOST_ROWS = 5_000_000;
/** Attacks a statement: each has up to some thousand rows. */
const BATCH = 100;

/** Replicas that prune at once share the work. */
const removal = (chosen: string) => `with gone as (
    select e.attack_uuid from attack_evidence e join attack a on a.uuid = e.attack_uuid
    where ${chosen} order by a.started_at limit ${BATCH} for update of e skip locked
  ), timeline as (
    delete from attack_timeline t using gone g where t.attack_uuid = g.attack_uuid
  ), packets as (
    delete from attack_packet p using gone g where p.attack_uuid = g.attack_uuid
  ), samples as (
    delete from attack_sample s using gone g where s.attack_uuid = g.attack_uuid
  )
  delete from attack_evidence e using gone g where e.attack_uuid = g.attack_uuid`;

const BY_AGE = removal('a.ended_at < now() - make_interval(days => $1)');

/** The oldest, once those that began later have all the room. */
const BEYOND = removal(`e.attack_uuid in (
      select o.attack_uuid from (
        select x.attack_uuid, sum(x.kept) over (order by b.started_at desc, b.sequence desc) as kept
        from attack_evidence x join attack b on b.uuid = x.attack_uuid
      ) o where o.kept > $1
    )`);

/** Absent `keepDays`: for ever, as far as there is room. Returns of how many attacks it went. Throws what the driver throws. */
export async function pruneEvidence(
  pool: pg.Pool,
  keepDays: number | undefined,
  mostRows = MOST_ROWS,
): Promise<number> {
  const old = keepDays === undefined ? 0 : await removeAll(pool, 'attack_evidence_old', BY_AGE, keepDays);
  return old + (await removeAll(pool, 'attack_evidence_beyond', BEYOND, mostRows));
}

async function removeAll(pool: pg.Pool, name: string, text: string, value: number): Promise<number> {
  let total = 0;
  for (let count = BATCH; count === BATCH; total += count) {
    count = (await pool.query({ name, text, values: [value] })).rowCount ?? 0;
  }
  return total;
}
