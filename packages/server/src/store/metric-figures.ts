/**
 * Counts for the metrics page, in one look at the database. Owns the statement: every count goes by an index or over a small
 * table, because it is asked for every few seconds.
 */

import type pg from 'pg';
import type { Statements } from './change-log.ts';
import type { Cursor } from './cursor.ts';

export interface MetricFigures {
  /** Seconds since the oldest entry of the change log that this replica has not handed out; 0: there is none. */
  readonly changeLagSeconds: number;
  readonly attacks: readonly { readonly own: boolean; readonly mitigation: string; readonly count: number }[];
  readonly flowrules: Readonly<Record<'held' | 'unannounced' | 'failed' | 'applied' | 'waiting' | 'marked', number>>;
  /** Undefined: there never was a BGP speaker. */
  readonly speaker: { readonly away: boolean; readonly peersDown: number } | undefined;
  readonly detectors: readonly {
    readonly name: string;
    readonly last_seen_ms: number | null;
    readonly status: {
      readonly receive_buffers: readonly { readonly bytes: number; readonly wanted: number }[];
      readonly kernel_drops: number;
      readonly tracked_destinations: number;
      readonly memory_bytes: number;
      /** These not of every release's detectors. */
      readonly refused?: readonly string[];
      readonly overflow?: Readonly<Record<string, number>>;
      readonly bus?: {
        readonly connected: boolean;
        readonly collectors: number;
        readonly partitions: number;
        readonly unsent: number;
        readonly malformed: number;
      };
    } | null;
  }[];
}

const FIGURES = `select
    coalesce((select extract(epoch from clock_timestamp() - min(at)) from change
      where (xid, position) > ($1::xid8, $2::int8)), 0)::float8 as "changeLagSeconds",
    (select coalesce(json_agg(a), '[]') from (
      select source = 'levee' as own, mitigation, count(*)::int from attack
        where ended_at is null and part_of is null group by 1, 2
    ) a) as attacks,
    (select json_build_object(
      'held', count(*) filter (where held is not null and deletion_marked_at is null),
      'unannounced', count(*) filter (where held is null and deletion_marked_at is null and not $3::boolean),
      'failed', count(*) filter (where $3 and held is null and deletion_marked_at is null and failure is not null),
      'applied', count(*) filter (where $3 and held is null and deletion_marked_at is null and failure is null
        and applied_position is not distinct from change_position),
      'waiting', count(*) filter (where $3 and held is null and deletion_marked_at is null and failure is null
        and applied_position is distinct from change_position),
      'marked', count(*) filter (where deletion_marked_at is not null)) from flowrule) as flowrules,
    (select json_build_object('away', trouble is not null, 'peersDown',
      (select count(*) from json_array_elements(coalesce(peers, '[]')) p where not (p->>'established')::bool))
      from bgp_speaker) as speaker,
    (select coalesce(json_agg(d), '[]') from (
      select name, (extract(epoch from last_seen_at) * 1000)::float8 as last_seen_ms, status from detector order by name
    ) d) as detectors`;

/** Throws what the driver throws. `cursor`: what was handed out. `hasSpeaker`: without one nothing is announced. */
export async function readMetricFigures(db: Statements, cursor: Cursor, hasSpeaker: boolean): Promise<MetricFigures> {
  const { rows } = await (db as pg.ClientBase).query<MetricFigures & { speaker: MetricFigures['speaker'] | null }>({
    name: 'metric_figures',
    text: FIGURES,
    values: [String(cursor.xid), cursor.position, hasSpeaker],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('the metrics have no row');
  return { ...row, changeLagSeconds: Math.max(0, row.changeLagSeconds), speaker: row.speaker ?? undefined };
}
