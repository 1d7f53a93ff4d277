/** How a list of any length is read in chunks, one statement each. Knows no table. */

/** Small, so that the first bytes leave soon. */
const firstChunk = 250;
const laterChunk = 2000;

/**
 * `load` gives the rows behind one (undefined: from the beginning), `limit` at most. The next chunk is fetched while the
 * present one is used. Never yields an empty chunk. Throws what `load` throws.
 */
export async function* readAhead<Row>(
  load: (behind: Row | undefined, limit: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[], void, undefined> {
  let limit = firstChunk;
  let rows = await load(undefined, limit);
  while (rows.length > 0) {
    const last = rows.at(-1);
    const next = last !== undefined && rows.length === limit ? load(last, laterChunk) : undefined;
    // A chunk that is fetched ahead may fail while nobody waits for it; whoever waits later still gets the error.
    next?.catch(() => {});
    yield rows;
    if (next === undefined) return;
    limit = laterChunk;
    rows = await next;
  }
}
