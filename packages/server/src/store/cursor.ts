/**
 * A place in the change log: transaction, then position in it. Everything up to a cursor is settled: no transaction
 * before it can still commit. Compared here only; to a router it is opaque text.
 */

export interface Cursor {
  /** xid8: rises over the life of the database, far below 2^53. */
  readonly xid: number;
  readonly position: number;
}

export function formatCursor(cursor: Cursor): string {
  return `${cursor.xid}.${cursor.position}`;
}

/** Undefined when it is not a cursor that this server could have given. */
export function parseCursor(text: string): Cursor | undefined {
  const match = /^(\d{1,16})\.(\d{1,16})$/.exec(text);
  if (match === null) return undefined;
  const cursor = { xid: Number(match[1]), position: Number(match[2]) };
  return Number.isSafeInteger(cursor.xid) && Number.isSafeInteger(cursor.position) ? cursor : undefined;
}

/** Negative, zero or positive, as for sort. */
export function compareCursors(a: Cursor, b: Cursor): number {
  return a.xid - b.xid || a.position - b.position;
}
