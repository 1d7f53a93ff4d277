/**
 * Forgets what was usual of destinations that nobody tells of any more: an hour of the week is told of once a week while there
 * is traffic. Those in use stay.
 */
import type pg from 'pg';

/** Eight weeks without a word. */
const KEEP_DAYS = 56;
const BATCH = 10_000;

const FORGET = `delete from detection_baseline b using (
    select dst, vector, hour from detection_baseline where updated_at < now() - make_interval(days => $1)
    order by updated_at limit ${BATCH} for update skip locked
  ) old where (b.dst, b.vector, b.hour) = (old.dst, old.vector, old.hour)`;

/** Returns how many went. Throws what the driver throws. */
export async function pruneBaselines(pool: Pick<pg.Pool, 'query'>, keepDays = KEEP_DAYS): Promise<number> {
  let gone = 0;
  for (;;) {
    const { rowCount } = await pool.query({ name: 'baseline_prune', text: FORGET, values: [keepDays] });
    gone += rowCount ?? 0;
    if ((rowCount ?? 0) < BATCH) return gone;
  }
}
