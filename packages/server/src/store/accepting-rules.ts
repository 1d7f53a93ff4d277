/**
 * The customers' rules that accept traffic to given destinations, and up to which transaction they are known: a flowrule that
 * was judged by them has to be judged again for every rule that a later one changes. Writes nothing.
 */
import { parseStoredRule } from '@levee/core/firewall/parse.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import type pg from 'pg';
import type { Statements } from './change-log.ts';

export interface AcceptingRules {
  readonly rules: readonly Rule[];
  /** All that transactions before it wrote was seen. */
  readonly judgedXid: string;
}

/** One statement, so that rules and transaction are of one snapshot. The cheap test of the text leaves out nearly all others. */
const READ = `select pg_snapshot_xmin(pg_current_snapshot())::text as xid,
    coalesce((select json_agg(json_build_object('uuid', r.uuid, 'sequence', r.sequence, 'fields', r.fields) order by r.sequence)
      from firewall_rule r
      where r.dst && any($1::cidr[]) and r.origin = 'customer' and r.deletion_marked_at is null
        and r.fields->>'action' = 'accept'), '[]') as rules`;

interface ReadRow {
  readonly xid: string;
  readonly rules: readonly { readonly uuid: string; readonly sequence: number; readonly fields: unknown }[];
}

/** `destinations`: canonical. Disabled rules accept nothing and are left out. */
export async function readAcceptingRules(db: Statements, destinations: readonly string[]): Promise<AcceptingRules> {
  const { rows } = await (db as pg.ClientBase).query<ReadRow>({
    name: 'accepting_rules',
    text: READ,
    values: [destinations],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('a select of one row without one');
  const rules = row.rules.map(({ uuid, sequence, fields }): Rule => {
    const parsed = parseStoredRule(fields, { uuid, sequence });
    if (!parsed.ok) throw new Error(`rule ${uuid} is stored with fields that do not parse`);
    return parsed.rule;
  });
  return { rules: rules.filter(({ disabled }) => !disabled), judgedXid: row.xid };
}
