/** What routers counted for an object, as rows give it: sums over all of them. Renders nothing. */
import { milliseconds } from './stored-row.ts';

export interface HitRow {
  /** Null: no router has reported a hit. */
  readonly packets: number | null;
  readonly bytes: number | null;
  readonly last_hit_ms: number | null;
}

/** Of the lateral join `hitSums`. */
export const hitSumColumns = `h.packets, h.bytes, ${milliseconds('h.last_hit_at')} as last_hit_ms`;

/** JSON's whole numbers end there for most readers, and a larger sum may not fit int8. */
const most = Number.MAX_SAFE_INTEGER;

/** Null stays null, which `least` alone would pass over. */
const capped = (column: string) => `case when count(*) > 0 then least(sum(${column}), ${most})::int8 end as ${column}`;

/** For the object `r`. `more`: further aggregates of the table's columns, each with a comma before it. */
export function hitSums(table: 'rule_hit' | 'filter_hit', column: string, more = ''): string {
  return `left join lateral (
    select ${capped('packets')}, ${capped('bytes')}, max(last_hit_at) as last_hit_at${more}
    from ${table} where ${column} = r.uuid
  ) h on true`;
}

/** A row that was just written has been hit by nothing yet. */
export const noHitSums: HitRow = { packets: null, bytes: null, last_hit_ms: null };
