/**
 * Owns the numbers of rows that come and go: whoever keeps columns keeps them by it. Bounded.
 */

const firstCapacity = 256;

export class Pool {
  size = 0;
  readonly #most: number;
  readonly #grown: (capacity: number) => void;
  #capacity: number;
  #used = 0;
  readonly #free: number[] = [];

  /** `most`: a power of two. `grown` is called once at the start as well. */
  constructor(most: number, grown: (capacity: number) => void) {
    this.#most = most;
    this.#grown = grown;
    this.#capacity = Math.min(most, firstCapacity);
    grown(this.#capacity);
  }

  get full(): boolean {
    return this.size === this.#most;
  }

  /** -1 when it is full. */
  take(): number {
    let row = this.#free.pop();
    if (row === undefined) {
      if (this.#used === this.#most) return -1;
      if (this.#used === this.#capacity) {
        this.#capacity *= 2;
        this.#grown(this.#capacity);
      }
      row = this.#used++;
    }
    this.size++;
    return row;
  }

  give(row: number): void {
    this.#free.push(row);
    this.size--;
  }
}
