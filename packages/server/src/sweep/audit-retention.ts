/** Forgets entries of the audit log that are older than the installation keeps them. */
import type pg from 'pg';

/** Rows a statement: a transaction of ours stays short. */
const BATCH = 5_000;

/** Replicas that prune at once share the work. Throws what the driver throws. */
const PRUNE = {
  name: 'audit_prune',
  text: `delete from audit where sequence in (
      select sequence from audit where written_at < now() - make_interval(days => $1) order by written_at limit ${BATCH}
      for update skip locked
    )`,
};

/** Returns how many went. */
export async function pruneAudit(pool: pg.Pool, keepDays: number): Promise<number> {
  let total = 0;
  for (let count = BATCH; count === BATCH; total += count) {
    count = (await pool.query({ ...PRUNE, values: [keepDays] })).rowCount ?? 0;
  }
  return total;
}
