/** Which rows and columns a list of firewall rules is read from. */
import type pg from 'pg';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';

const source: ListSource = {
  name: 'rules',
  table: 'firewall_rule',
  columns: `${ruleColumns}, ${hitColumns}`,
  join: hitsJoin,
};

export function ruleChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly RuleRow[]> {
  return chunksOf<RuleRow>(pool, source, scope);
}
