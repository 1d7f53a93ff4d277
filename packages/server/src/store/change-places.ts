/**
 * Where the database keeps transaction numbers: the place of each object's last change, and how far the log was pruned,
 * acknowledged and followed. The one table of them; a test holds it against the catalogue. Runs no statement.
 *
 * An object's place is `change_xid` and `change_position` of its row. A table that has them belongs in here: its numbers
 * mean nothing in another cluster until `log-history.ts` has brought them there.
 */

/** By kind, as the change log calls it: where its rows are. */
export const changingTables = {
  firewall_rule: 'firewall_rule',
  filter: 'filter',
  tunnel: 'tunnel',
  rdns: 'rdns_record',
  flowrule: 'flowrule',
  attack: 'attack',
} as const;

export interface LogPlace {
  readonly table: string;
  readonly column: string;
  /** Whether the number is one that a transaction wrote under; otherwise it may be the next that will be given out. */
  readonly written: boolean;
}

/** Every column that holds a transaction number. */
export const logPlaces: readonly LogPlace[] = [
  ...Object.values(changingTables).map((table) => ({ table, column: 'change_xid', written: true })),
  { table: 'change', column: 'xid', written: true },
  { table: 'audit', column: 'xid', written: true },
  { table: 'change_floor', column: 'xid', written: false },
  { table: 'router', column: 'acked_xid', written: false },
  { table: 'router_ack', column: 'xid', written: false },
  { table: 'event_log', column: 'xid', written: false },
  { table: 'flowrule', column: 'judged_xid', written: false },
];
