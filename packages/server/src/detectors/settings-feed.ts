/**
 * Follows what detectors are to know, on every replica by the change log: reads it anew whenever something in it may be
 * another, and tells only when it is. Sends nothing.
 */
import type { DetectorSettings } from '@levee/contract/detector.ts';
import type pg from 'pg';
import type { ChangeTail } from '../store/change-tail.ts';
import { nextRevision, readOngoing, readStandingSettings } from '../store/detector-settings.ts';

export interface SettingsFeed {
  /** Undefined while they have never been read. */
  readonly present: DetectorSettings | undefined;
  onChange(listener: (settings: DetectorSettings) => void): () => void;
  stop(): Promise<void>;
}

export interface FeedOptions {
  readonly log: (message: string) => void;
}

/** What came by the log is gathered for so long: a provider with a hundred prefixes is one reading. */
const GATHER_MILLISECONDS = 20;
/** A reading that failed is repeated after this. */
const RETRY_MILLISECONDS = 500;

/** Kinds of change entries that the first part depends on; `attack` the second. */
const standingKinds: ReadonlySet<string> = new Set(['subnet', 'detection_policy', 'exporter']);

export function startSettingsFeed(pool: pg.Pool, tail: ChangeTail, { log }: FeedOptions): SettingsFeed {
  const listeners = new Set<(settings: DetectorSettings) => void>();
  let present: DetectorSettings | undefined;
  let standing: Awaited<ReturnType<typeof readStandingSettings>> | undefined;
  let due = { standing: true, ongoing: true };
  let reading: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failing = false;
  let stopped = false;

  const read = async (): Promise<void> => {
    const asked = due;
    due = { standing: false, ongoing: false };
    try {
      const revision = await nextRevision(pool);
      const nextStanding = asked.standing || standing === undefined ? await readStandingSettings(pool) : standing;
      const ongoing = asked.ongoing || present === undefined ? await readOngoing(pool) : present.ongoing;
      standing = nextStanding;
      if (failing) log('the settings of detectors are read again');
      failing = false;
      tell({ revision, ...nextStanding, ongoing });
    } catch (error) {
      due = { standing: due.standing || asked.standing, ongoing: due.ongoing || asked.ongoing };
      if (!failing) log(`the settings of detectors cannot be read: ${(error as Error).message}`);
      failing = true;
    }
  };
  const tell = (read: Omit<DetectorSettings, 'type'>): void => {
    if (present !== undefined && sameSettings(present, read)) {
      // Whoever comes next counts on from the newest totals; the others have them.
      present = { ...present, ongoing: read.ongoing };
      return;
    }
    present = { type: 'settings', ...read };
    for (const listener of listeners) listener(present);
  };
  const schedule = (milliseconds: number): void => {
    if (stopped || reading !== undefined) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      reading = read().finally(() => {
        reading = undefined;
        if (due.standing || due.ongoing) schedule(failing ? RETRY_MILLISECONDS : GATHER_MILLISECONDS);
      });
    }, milliseconds);
  };
  const leave = tail.subscribe({
    changes({ entries, unsettled }) {
      for (const { kind } of [...entries, ...unsettled]) {
        if (standingKinds.has(kind)) due.standing = true;
        else if (kind === 'attack') due.ongoing = true;
      }
      if (due.standing || due.ongoing) schedule(GATHER_MILLISECONDS);
    },
    gap() {
      due = { standing: true, ongoing: true };
      schedule(0);
    },
  });
  schedule(0);
  return {
    get present() {
      return present;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async stop() {
      stopped = true;
      leave();
      clearTimeout(timer);
      await reading;
    },
  };
}

function sameSettings(a: Omit<DetectorSettings, 'type'>, b: typeof a): boolean {
  const text = ({ prefixes, policies, exporters, ongoing }: typeof a) =>
    JSON.stringify([prefixes, policies, exporters, ongoing.map(({ told: _, ...attack }) => attack)]);
  return text(a) === text(b);
}
