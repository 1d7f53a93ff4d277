/**
 * The firewall rule as rows give it to http and commands: what an answer needs, with the fields still as JSON text.
 * Owns the columns that are selected; renders nothing.
 */
import { milliseconds, type StoredRow, storedColumns } from './stored-row.ts';

export interface RuleRow extends StoredRow {
  /** Null: no router has reported a hit. */
  readonly packets: number | null;
  readonly bytes: number | null;
  readonly last_hit_ms: number | null;
  readonly shared_by: number | null;
}

/** Of `firewall_rule r`, without what was counted. */
export const ruleColumns = storedColumns;

/** Of the lateral join `hitsJoin`. */
export const hitColumns = `h.packets, h.bytes, ${milliseconds('h.last_hit_at')} as last_hit_ms, h.shared_by`;

/** JSON's whole numbers end there for most readers, and a larger sum may not fit int8. */
const most = Number.MAX_SAFE_INTEGER;

/** Null stays null, which `least` alone would pass over. */
const capped = (column: string) => `case when count(*) > 0 then least(sum(${column}), ${most})::int8 end as ${column}`;

/** Over all routers; the largest sharing is shown. */
export const hitsJoin = `left join lateral (
    select ${capped('packets')}, ${capped('bytes')}, max(last_hit_at) as last_hit_at, max(shared_by) as shared_by
    from rule_hit where rule_uuid = r.uuid
  ) h on true`;

/** Read from the text: quotes inside a value are escaped, so that only the member itself looks like this. */
export function isDisabled(row: Pick<RuleRow, 'fields'>): boolean {
  return row.fields.includes('"disabled":true');
}

/** A row that was just written has been hit by nothing yet. */
export const noHits = { packets: null, bytes: null, last_hit_ms: null, shared_by: null } as const;
