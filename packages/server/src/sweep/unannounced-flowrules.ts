/**
 * Removes marked flowrules that no BGP speaker has. One that a speaker has is its reconciler's to withdraw and remove; it
 * says so by `applied_position`, which it must write before it announces. They stay for a second, so that who tells of them has
 * seen what they were when they were marked.
 */
import type pg from 'pg';

const GONE = `delete from flowrule r
    where r.deletion_marked_at <= now() - interval '1 second' and r.applied_position is null
      and r.change_xid < pg_snapshot_xmin(pg_current_snapshot())`;

export async function removeUnannounced(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  await pool.query({ name: 'sweep_gone_flowrule', text: GONE });
}
