/**
 * Tries records again that a zone's server refused, or that it was sent together with refused ones: a few messages at a
 * time, account by account, so that what one account may not have never takes another's place, nor that of a fresh change.
 * Decides whose turn it is and when the next one is; sends nothing itself.
 */
import type pg from 'pg';
import { type Doubtful, loadDoubtful, nextOwner, type OpenRecord } from './open-records.ts';
import type { Budget } from './port.ts';
import type { PlacedZone } from './record-store.ts';

/** What became of records that were sent. */
export interface SentRecords {
  readonly refused: number;
  readonly untried: readonly OpenRecord[];
}

export type SendRecords = (records: readonly OpenRecord[], budget: Budget) => Promise<SentRecords | 'trouble'>;

export interface Pace {
  readonly firstMilliseconds: number;
  /** Doubled up to this while nothing of what is tried is taken. */
  readonly longestMilliseconds: number;
}

export interface DoubtfulOptions {
  readonly pool: pg.Pool;
  readonly zone: PlacedZone;
  readonly kind: Doubtful;
  readonly pace: Pace;
}

/** Beyond the first message, to find out which records of many are refused: some twenty of 500, if all are. */
export const messagesPerVisit = 50;
const accountsPerRound = 3;
const recordsPerVisit = 500;

export class DoubtfulRecords {
  readonly #options: DoubtfulOptions;
  /** Milliseconds since 1970; infinite: none are known. At first there may be any. */
  dueAt = 0;
  #pause: number;
  /** Whose turn it was. */
  #owner: string | undefined;
  /** Account → the change up to which its records have had their turn. */
  readonly #reached = new Map<string, number>();

  constructor(options: DoubtfulOptions) {
    this.#options = options;
    this.#pause = options.pace.firstMilliseconds;
  }

  /** There are new ones. */
  added(): void {
    this.#pause = this.#options.pace.firstMilliseconds;
    this.dueAt = Math.min(this.dueAt, Date.now() + this.#pause);
  }

  async round(send: SendRecords): Promise<'done' | 'trouble'> {
    const { pool, zone, kind, pace } = this.#options;
    const seen = new Set<string>();
    let taken = 0;
    while (seen.size < accountsPerRound) {
      const owner = await nextOwner(pool, zone, kind, this.#owner);
      if (owner === undefined || seen.has(owner)) break;
      seen.add(owner);
      this.#owner = owner;
      const records = await this.#turnOf(owner);
      const sent = await send(records, { left: messagesPerVisit });
      if (sent === 'trouble') return 'trouble';
      taken += records.length - sent.refused - sent.untried.length;
      this.#note(owner, records, sent.untried);
    }
    this.#pause = taken > 0 ? pace.firstMilliseconds : Math.min(this.#pause * 2, pace.longestMilliseconds);
    this.dueAt = seen.size === 0 ? Number.POSITIVE_INFINITY : Date.now() + this.#pause;
    if (seen.size === 0) this.#reached.clear();
    return 'done';
  }

  async #turnOf(owner: string): Promise<OpenRecord[]> {
    const { pool, zone, kind } = this.#options;
    const after = this.#reached.get(owner) ?? 0;
    const next = await loadDoubtful(pool, zone, kind, owner, after, recordsPerVisit);
    return next.length > 0 || after === 0 ? next : loadDoubtful(pool, zone, kind, owner, 0, recordsPerVisit);
  }

  /** Those in front were tried: the next turn begins with the first that was not. */
  #note(owner: string, records: readonly OpenRecord[], untried: readonly OpenRecord[]): void {
    const [waiting] = untried;
    const reached = waiting === undefined ? records.at(-1) : records[records.indexOf(waiting) - 1];
    if (reached === undefined) this.#reached.delete(owner);
    else this.#reached.set(owner, reached.changePosition);
  }
}
