/** The filter as rows give it to http and commands. Owns the columns that are selected; renders nothing. */
import { type HitRow, hitSumColumns, hitSums } from './hit-row.ts';
import { type StoredRow, storedColumns } from './stored-row.ts';

export interface FilterRow extends StoredRow, HitRow {
  /** The id of its kind. */
  readonly kind: number;
}

/** Of `filter r` and the lateral join `filterHits`. */
export const filterColumns = `${storedColumns}, r.kind, ${hitSumColumns}`;

export const filterHits = hitSums('filter_hit', 'filter_uuid');
