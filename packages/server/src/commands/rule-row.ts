/**
 * The firewall rule as rows give it to http and commands: what an answer needs, with the fields still as JSON text.
 * Owns the columns that are selected; renders nothing.
 */
import { type HitRow, hitSumColumns, hitSums, noHitSums } from './hit-row.ts';
import { type StoredRow, storedColumns } from './stored-row.ts';

export interface RuleRow extends StoredRow, HitRow {
  /** `attack`: a measure of the service's own; `operator`: one that the operator keeps. */
  readonly origin: 'customer' | 'attack' | 'operator';
  /** Null: a customer's rule. */
  readonly attack_uuid: string | null;
  readonly shared_by: number | null;
}

/** Of `firewall_rule r`, without what was counted. */
export const ruleColumns = `${storedColumns}, r.origin, r.attack_uuid::text as attack_uuid`;

/** Of the lateral join `hitsJoin`. */
export const hitColumns = `${hitSumColumns}, h.shared_by`;

/** Over all routers; the largest sharing is shown. */
export const hitsJoin = hitSums('rule_hit', 'rule_uuid', ', max(shared_by) as shared_by');

/** Read from the text: quotes inside a value are escaped, so that only the member itself looks like this. */
export function isDisabled(row: Pick<RuleRow, 'fields'>): boolean {
  return row.fields.includes('"disabled":true');
}

/** What a customer's rule has of measures: nothing. */
export const ofCustomer = { origin: 'customer', attack_uuid: null } as const;

/** A row that was just written has been hit by nothing yet. */
export const noHits = { ...noHitSums, shared_by: null } as const;
