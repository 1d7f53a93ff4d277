/** Reads filters, one or a list of them: which rows and columns. */
import type pg from 'pg';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { type FilterRow, filterColumns, filterHits } from './filter-row.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';
import { done, type Outcome, refuse } from './outcome.ts';

const readStatement = {
  name: 'filter_read',
  text: `select ${filterColumns} from filter r ${filterHits} where r.uuid = $1 and (r.owner_uuid = $2 or r.provider_uuid = $2)`,
};

/** A provider also reads what its users own. `uuid` is well-formed. */
export async function readFilter(executor: Executor, caller: Caller, uuid: string): Promise<Outcome<FilterRow>> {
  const [row] = await executor.rows<FilterRow>(readStatement, [uuid, caller.accountUuid]);
  return row === undefined ? refuse('not_found') : done(row);
}

const source: ListSource = { name: 'filters', table: 'filter', columns: filterColumns, join: filterHits };

export function filterChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly FilterRow[]> {
  return chunksOf<FilterRow>(pool, source, scope);
}
