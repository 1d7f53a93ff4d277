/**
 * Removes marked flowrules that no BGP speaker has. One that a speaker has is its reconciler's to withdraw and remove; it
 * says so by `applied_position`, which it must write before it announces.
 */
import type pg from 'pg';

const GONE = `delete from flowrule r
    where r.deletion_marked_at is not null and r.applied_position is null
      and r.change_xid < pg_snapshot_xmin(pg_current_snapshot())`;

export async function removeUnannounced(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  await pool.query({ name: 'sweep_gone_flowrule', text: GONE });
}
