/** What a list of objects is asked for, whatever their kind; and how such a list is read from a table in chunks. */
import type pg from 'pg';
import { readAhead } from './read-ahead.ts';

export interface ListScope {
  /** All objects of this provider and its users, of this owner, or whoever's they are. */
  readonly of: { readonly providerUuid: string } | { readonly ownerUuid: string } | 'everyone';
  /** Not with one owner's: only this one's. */
  readonly ownerUuid?: string | undefined;
  /** Canonical; only objects whose destination covers it or lies inside it. */
  readonly dst?: string | undefined;
  /** Only objects created after the one with this sequence. */
  readonly after: number;
}

/** How the rows of a kind are selected. */
export interface ListSource {
  /** Unique: the first part of the statements' names. */
  readonly name: string;
  /** With the columns `sequence`, `owner_uuid` and `provider_uuid`. */
  readonly table: string;
  /** Selected from the rows, which are called `r`, and `join`. */
  readonly columns: string;
  readonly join?: string;
  /** The condition for a destination, with $ standing for its parameter; absent: `r.dst && $::cidr`. */
  readonly covers?: string;
}

/**
 * In creation order: each chunk is one statement that begins after the last one's object, so that a list of any length
 * needs the memory of a chunk and holds no transaction open. The next chunk is fetched while the present one is used.
 * Never yields an empty chunk. Throws what the driver throws.
 */
export async function* chunksOf<Row extends pg.QueryResultRow & { readonly sequence: number }>(
  pool: Pick<pg.Pool, 'query'>,
  source: ListSource,
  scope: ListScope,
): AsyncGenerator<readonly Row[], void, undefined> {
  const statement = statementOf(source, scope);
  yield* readAhead<Row>(async (last, limit) => {
    const values = [...valuesOf(scope), last?.sequence ?? scope.after, limit];
    return (await pool.query<Row>({ ...statement, values })).rows;
  });
}

function statementOf(source: ListSource, scope: ListScope): { name: string; text: string } {
  const conditions: string[] = [];
  let name = `${source.name}_of_everyone`;
  let at = 0;
  if (scope.of !== 'everyone') {
    const byProvider = 'providerUuid' in scope.of;
    conditions.push(byProvider ? 'r.provider_uuid = $1' : 'r.owner_uuid = $1');
    name = `${source.name}_of_${byProvider ? 'provider' : 'owner'}`;
    at = 1;
  }
  if (scope.ownerUuid !== undefined) {
    conditions.push(`r.owner_uuid = $${++at}`);
    name += '_owner';
  }
  if (scope.dst !== undefined) {
    const parameter = `$${++at}`;
    conditions.push((source.covers ?? 'r.dst && $::cidr').replaceAll('$', () => parameter));
    name += '_dst';
  }
  conditions.push(`r.sequence > $${++at}`);
  const text = `select ${source.columns} from (
      select * from ${source.table} r where ${conditions.join(' and ')} order by r.sequence limit $${++at}
    ) r ${source.join ?? ''} order by r.sequence`;
  return { name, text };
}

function valuesOf(scope: ListScope): unknown[] {
  const values: unknown[] = [];
  if (scope.of !== 'everyone') values.push('providerUuid' in scope.of ? scope.of.providerUuid : scope.of.ownerUuid);
  if (scope.ownerUuid !== undefined) values.push(scope.ownerUuid);
  if (scope.dst !== undefined) values.push(scope.dst);
  return values;
}
