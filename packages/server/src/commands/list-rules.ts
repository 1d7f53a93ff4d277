/**
 * Lists firewall rules in creation order, in chunks: each is one statement that begins after the last one's rule, so
 * that a list of any length needs the memory of a chunk and holds no transaction open. The next chunk is fetched
 * while the present one is used.
 */
import type pg from 'pg';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';

export interface RuleListScope {
  /** All rules of this provider and its users, or of this owner. */
  readonly of: { readonly providerUuid: string } | { readonly ownerUuid: string };
  /** With `providerUuid`: only this owner's. */
  readonly ownerUuid?: string | undefined;
  /** Canonical; only rules whose destination covers it or lies inside it. */
  readonly dst?: string | undefined;
  /** Only rules created after the one with this sequence. */
  readonly after: number;
}

/** Small, so that the first bytes leave soon. */
const firstChunk = 250;
const laterChunk = 2000;

/** Never yields an empty chunk. Throws what the driver throws. */
export async function* ruleChunks(
  pool: Pick<pg.Pool, 'query'>,
  scope: RuleListScope,
): AsyncGenerator<readonly RuleRow[], void, undefined> {
  const statement = statementOf(scope);
  const load = async (after: number, limit: number) =>
    (await pool.query<RuleRow>({ ...statement, values: [...valuesOf(scope), after, limit] })).rows;
  let limit = firstChunk;
  let rows = await load(scope.after, limit);
  while (rows.length > 0) {
    const last = rows.at(-1);
    const next = last !== undefined && rows.length === limit ? load(last.sequence, laterChunk) : undefined;
    // A chunk that is fetched ahead may fail while nobody waits for it; whoever waits later still gets the error.
    next?.catch(() => {});
    yield rows;
    if (next === undefined) return;
    limit = laterChunk;
    rows = await next;
  }
}

function statementOf(scope: RuleListScope): { name: string; text: string } {
  const conditions = ['providerUuid' in scope.of ? 'r.provider_uuid = $1' : 'r.owner_uuid = $1'];
  let name = 'providerUuid' in scope.of ? 'rules_of_provider' : 'rules_of_owner';
  let at = 1;
  if (scope.ownerUuid !== undefined) {
    conditions.push(`r.owner_uuid = $${++at}`);
    name += '_owner';
  }
  if (scope.dst !== undefined) {
    conditions.push(`r.dst && $${++at}::cidr`);
    name += '_dst';
  }
  conditions.push(`r.sequence > $${++at}`);
  const text = `select ${ruleColumns}, ${hitColumns} from (
      select * from firewall_rule r where ${conditions.join(' and ')} order by r.sequence limit $${++at}
    ) r ${hitsJoin} order by r.sequence`;
  return { name, text };
}

function valuesOf(scope: RuleListScope): unknown[] {
  const values: unknown[] = ['providerUuid' in scope.of ? scope.of.providerUuid : scope.of.ownerUuid];
  if (scope.ownerUuid !== undefined) values.push(scope.ownerUuid);
  if (scope.dst !== undefined) values.push(scope.dst);
  return values;
}
