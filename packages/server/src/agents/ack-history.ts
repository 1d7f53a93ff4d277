/**
 * When a router acknowledged what: a bounded list, newest last. Answers from when on a change has been in force there.
 */
import { type Cursor, compareCursors } from '../store/cursor.ts';

export interface Acknowledged {
  readonly atMilliseconds: number;
  /** False: the true moment may be earlier, its acknowledgement is no longer kept. */
  readonly exact: boolean;
}

interface Entry extends Cursor {
  readonly atMilliseconds: number;
}

export class AckHistory {
  #entries: Entry[] = [];

  /** The oldest place that is kept; everything up to it is answered alike. */
  get oldest(): Cursor | undefined {
    return this.#entries[0];
  }

  get newest(): Cursor | undefined {
    return this.#entries.at(-1);
  }

  /**
   * The same place again changes nothing. An earlier place than the last: the router fell back, what it acknowledged
   * beyond is void.
   */
  add(cursor: Cursor, atMilliseconds: number, keep: number): void {
    this.fallBackTo(cursor);
    const last = this.#entries.at(-1);
    if (last !== undefined && compareCursors(cursor, last) === 0) return;
    this.#entries.push({ xid: cursor.xid, position: cursor.position, atMilliseconds });
    if (this.#entries.length > keep) this.#entries.splice(0, Math.ceil(keep / 4));
  }

  /** What was acknowledged beyond is void. */
  fallBackTo(cursor: Cursor): void {
    for (let last = this.newest; last !== undefined && compareCursors(cursor, last) < 0; last = this.newest) {
      this.#entries.pop();
    }
  }

  clear(): void {
    this.#entries = [];
  }

  /** The first acknowledgement that covers `cursor`, or undefined. */
  covering(cursor: Cursor): Acknowledged | undefined {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareCursors(this.#entries[middle] as Entry, cursor) < 0) low = middle + 1;
      else high = middle;
    }
    const found = this.#entries[low];
    return found === undefined ? undefined : { atMilliseconds: found.atMilliseconds, exact: low > 0 };
  }
}
