/** The filter as rows give it to http and commands. Owns the columns that are selected; renders nothing. */
import { type StoredRow, storedColumns } from './stored-row.ts';

export interface FilterRow extends StoredRow {
  /** The id of its kind. */
  readonly kind: number;
}

/** Of `filter r`. */
export const filterColumns = `${storedColumns}, r.kind`;
