/**
 * Keeps one zone's server as the database says: applies what is open, retries what failed, and compares the whole now
 * and then. Runs in one replica at a time (store/held-leads.ts). Reads what is desired anew for every message, so that a
 * worker that starts in the middle of anything goes on rightly.
 */
import { parseAddress } from '@levee/core/net/address.ts';
import { ownerName, type ReverseZone } from '@levee/core/rdns/reverse-name.ts';
import type pg from 'pg';
import { DoubtfulRecords, messagesPerVisit, type SentRecords } from './doubtful-records.ts';
import { loadFresh, type OpenRecord, saveHeld, saveTaken } from './open-records.ts';
import type { Budget, PtrChange, Trouble, ZoneServer } from './port.ts';
import { type AppliedRecord, loadApplied, reopen, saveStanding } from './record-store.ts';

export interface ZoneWorkerOptions {
  readonly pool: pg.Pool;
  readonly uuid: string;
  readonly zone: ReverseZone;
  readonly server: ZoneServer;
  /** Throws when another replica may keep the zone: awaited before the server is told anything. */
  readonly prove: () => Promise<void>;
  /** Something was written to the change log. */
  readonly committed: () => void;
  readonly log: (message: string) => void;
  readonly compareEveryMilliseconds?: number;
  readonly probeEveryMilliseconds?: number;
}

export interface ZoneWorker {
  /** Something may be open. */
  wake(): void;
  /** Ends what is under way; nothing is sent afterwards. */
  stop(): Promise<void>;
}

/** Records a message; the server takes all of it or nothing. */
const batchRecords = 500;
/** Records compared at once: drivers that can only read a whole zone do so once for each. */
const comparedRecords = 50_000;
/** While the server is away: a record is there within a second of its return. */
const firstRetryMilliseconds = 50;
const longestRetryMilliseconds = 600;
/** That a trouble goes on is noted so often; that it begins, changes or ends at once. */
const noteEveryMilliseconds = 10_000;
/** Between the rounds that find out which records are refused: fresh ones get in between. */
const heldPace = { firstMilliseconds: 50, longestMilliseconds: 50 };
const failedPace = { firstMilliseconds: 1_000, longestMilliseconds: 5_000 };

export function startZoneWorker(options: ZoneWorkerOptions): ZoneWorker {
  const worker = new Worker(options);
  const running = worker.run();
  return {
    wake: () => worker.wake(),
    async stop() {
      worker.stop();
      await running;
    },
  };
}

type Round = 'done' | 'trouble';

class Worker {
  readonly #options: Required<ZoneWorkerOptions>;
  #stopped = false;
  #rouse: (() => void) | undefined;
  #awake = false;
  /** When the present round did. */
  #begunAt = 0;
  /** While the server is in trouble: not before. */
  #retryAt = 0;
  #retryMilliseconds = firstRetryMilliseconds;
  readonly #held: DoubtfulRecords;
  readonly #failed: DoubtfulRecords;
  #compareAt = 0;
  #probeAt = 0;
  #trouble: Trouble['trouble'] | undefined;
  #noted: { readonly reason: string; readonly until: number } | undefined;
  #failing = false;

  constructor(options: ZoneWorkerOptions) {
    this.#options = { compareEveryMilliseconds: 600_000, probeEveryMilliseconds: 15_000, ...options };
    const { pool } = options;
    this.#held = new DoubtfulRecords({ pool, zone: options, kind: 'held', pace: heldPace });
    this.#failed = new DoubtfulRecords({ pool, zone: options, kind: 'failed', pace: failedPace });
  }

  wake(): void {
    this.#awake = true;
    this.#rouse?.();
  }

  stop(): void {
    this.#stopped = true;
    this.#options.server.close();
    this.#rouse?.();
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#awake = false;
      try {
        if (Date.now() >= this.#retryAt) {
          this.#begunAt = Date.now();
          await this.#round();
          this.#failing = false;
        }
      } catch (error) {
        // The database is away, or a bug: neither must end the worker.
        if (!this.#stopped && !this.#failing)
          this.#options.log(`${this.#options.zone.name}: ${(error as Error).message}`);
        this.#failing = true;
        this.#retryAt = Date.now() + longestRetryMilliseconds;
      }
      await this.#sleep();
    }
  }

  async #round(): Promise<void> {
    if ((await this.#applyFresh()) === 'trouble') return;
    if (Date.now() >= this.#held.dueAt) {
      if ((await this.#held.round((...records) => this.#sendAnew(...records))) === 'trouble') return;
    }
    if (Date.now() >= this.#failed.dueAt) {
      if ((await this.#failed.round((...records) => this.#send(...records))) === 'trouble') return;
    }
    if (Date.now() >= this.#compareAt) {
      if ((await this.#compare()) === 'trouble') return;
      this.#compareAt = Date.now() + this.#options.compareEveryMilliseconds;
      // What was found different is open now.
      if ((await this.#applyFresh()) === 'trouble') return;
    }
    if (Date.now() >= this.#probeAt) {
      const probed = await this.#options.server.probe();
      if (probed.ok) await this.#well(null);
      else await this.#inTrouble(probed);
    }
  }

  /** In messages of many records, until nothing is fresh. What a refused message leaves in doubt is held for later. */
  async #applyFresh(): Promise<Round> {
    const { pool } = this.#options;
    const budget = { left: messagesPerVisit };
    let after = 0;
    while (!this.#stopped) {
      const fresh = await loadFresh(pool, this.#options, after, batchRecords);
      const last = fresh.at(-1);
      if (last === undefined) break;
      after = last.changePosition;
      const sent = await this.#sendAnew(fresh, budget);
      if (sent === 'trouble') return 'trouble';
      if (sent.untried.length > 0) {
        await saveHeld(pool, sent.untried);
        this.#options.committed();
        this.#held.added();
      }
      // A record that changed meanwhile is open again, behind this one.
      if (fresh.length < batchRecords) break;
    }
    return 'done';
  }

  /** Of records that have not failed before. */
  async #sendAnew(records: readonly OpenRecord[], budget: Budget): Promise<SentRecords | 'trouble'> {
    const sent = await this.#send(records, budget);
    if (sent !== 'trouble' && sent.refused > 0) this.#failed.added();
    return sent;
  }

  /** Says of the records what became of them. */
  async #send(records: readonly OpenRecord[], budget: Budget): Promise<SentRecords | 'trouble'> {
    const { pool, zone, server } = this.#options;
    await this.#options.prove();
    if (this.#stopped) return 'trouble';
    const applied = await server.apply(changesOf(zone, records), budget);
    if (this.#stopped) return 'trouble';
    if (!applied.ok) return this.#inTrouble(applied);
    const [untried, tried] = partition(records, ({ address }) => applied.untried.has(ownerOf(zone, address)));
    const taken = tried.map((record) => ({
      uuid: record.uuid,
      position: record.changePosition,
      failure: applied.refused.get(ownerOf(zone, record.address)) ?? null,
    }));
    if ((await saveTaken(pool, taken)) > 0) this.#options.committed();
    const refused = taken.filter(({ failure }) => failure !== null);
    await this.#well(refused[0]?.failure ?? null);
    return { refused: refused.length, untried };
  }

  /** What the server has against what it is said to have. Names without a row of ours are not looked at. */
  async #compare(): Promise<Round> {
    const { pool, zone, server, log } = this.#options;
    let after: string | null = null;
    while (!this.#stopped) {
      const applied: AppliedRecord[] = await loadApplied(pool, this.#options, after, comparedRecords);
      if (applied.length > 0) {
        const read = await server.readBack(applied.map((record) => ownerOf(zone, record.address)));
        if (this.#stopped) return 'trouble';
        if (!read.ok) return this.#inTrouble(read);
        const drifted = applied.filter((record) => {
          const targets = read.targets.get(ownerOf(zone, record.address));
          return targets !== undefined && !(targets.length === 1 && targets[0] === record.record);
        });
        if (drifted.length > 0) {
          log(`${zone.name}: ${drifted.length} records are not as they were applied; applying them again`);
          await reopen(pool, drifted);
          this.#options.committed();
        }
      }
      if (applied.length < comparedRecords) break;
      after = applied.at(-1)?.address ?? null;
    }
    return 'done';
  }

  async #well(refusal: string | null): Promise<void> {
    const { pool, uuid, zone, log } = this.#options;
    const recovered = this.#trouble !== undefined;
    this.#retryMilliseconds = firstRetryMilliseconds;
    this.#trouble = undefined;
    this.#noted = undefined;
    if (recovered) {
      log(`the DNS server of ${zone.name} takes changes again`);
      // It may have come back with less than it had.
      this.#compareAt = 0;
      this.#awake = true;
    }
    if (recovered || refusal !== null || Date.now() >= this.#probeAt) {
      await saveStanding(pool, uuid, { trouble: null, error: refusal });
      this.#options.committed();
    }
    this.#probeAt = Date.now() + this.#options.probeEveryMilliseconds;
  }

  async #inTrouble({ trouble, reason }: Trouble): Promise<'trouble'> {
    // It was closed under way: nothing is known of the server.
    if (this.#stopped) return 'trouble';
    const { pool, uuid, zone, log } = this.#options;
    // From where the attempt began: one that took long is its own pause.
    this.#retryAt = Math.max(this.#begunAt + this.#retryMilliseconds, Date.now() + firstRetryMilliseconds);
    this.#retryMilliseconds = Math.min(this.#retryMilliseconds * 2, longestRetryMilliseconds);
    if (this.#trouble !== trouble) log(`the DNS server of ${zone.name} ${words[trouble]}: ${reason}`);
    this.#trouble = trouble;
    this.#probeAt = 0;
    const what = `${trouble} ${reason}`;
    if (this.#noted?.reason === what && Date.now() < this.#noted.until) return 'trouble';
    await saveStanding(pool, uuid, { trouble, error: reason });
    this.#noted = { reason: what, until: Date.now() + noteEveryMilliseconds };
    this.#options.committed();
    return 'trouble';
  }

  async #sleep(): Promise<void> {
    const due =
      this.#trouble !== undefined || Date.now() < this.#retryAt
        ? this.#retryAt
        : Math.min(this.#held.dueAt, this.#failed.dueAt, this.#compareAt, this.#probeAt);
    const milliseconds = due - Date.now();
    // While the server is in trouble, what is new waits with the rest.
    const held = Date.now() < this.#retryAt;
    if (this.#stopped || milliseconds <= 0 || (this.#awake && !held)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    this.#rouse = () => {
      if (this.#stopped || Date.now() >= this.#retryAt) resolve();
    };
    await promise;
    this.#rouse = undefined;
    clearTimeout(timer);
  }
}

const words = { away: 'is away', refused: 'refuses changes' } as const;

function ownerOf(zone: ReverseZone, address: string): string {
  const read = parseAddress(address);
  if (!read.ok) throw new Error(`a stored address is none: ${address}`);
  return ownerName(zone, read.address);
}

/** One an owner: a deleted record and its successor want the same. */
function changesOf(zone: ReverseZone, records: readonly OpenRecord[]): PtrChange[] {
  const changes = new Map<string, PtrChange>();
  for (const { address, target } of records) {
    const owner = ownerOf(zone, address);
    changes.set(owner, { owner, target: target ?? undefined });
  }
  return [...changes.values()];
}

function partition<T>(all: readonly T[], holds: (each: T) => boolean): [yes: T[], no: T[]] {
  const { yes = [], no = [] } = Object.groupBy(all, (each) => (holds(each) ? 'yes' : 'no'));
  return [yes, no];
}
