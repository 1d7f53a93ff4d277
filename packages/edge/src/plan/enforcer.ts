/**
 * Makes the kernel follow the desired state: takes what arrives, remembers it on disk, has it installed, says what is in
 * force and what is not. The one place where queue, files and installer meet; the order here is what makes a crash at
 * any moment harmless:
 *
 *   journal written (names the mark) → kernel's transaction (carries the mark) → acknowledged once both are done.
 *
 * What tunnels there should be is told to their reconciler once the journal is written, beside the kernel's transaction: only
 * the acknowledgement waits for both. Never takes anything out because it stops, crashes or hears nothing.
 */
import type { AgentFailure } from '@levee/contract/agent.ts';
import type { Logger } from 'pino';
import { applyEntry, type DesiredState } from '../state/desired-state.ts';
import { type AgentEntry, type AgentObjects, isAgentFilter } from '../state/objects.ts';
import type { LoadedState, StateStore } from '../state/store.ts';
import type { TunnelReconciler } from '../tunnels/port.ts';
import { findAdoptable, type TableMarks } from './adoption.ts';
import { createBatcher } from './batcher.ts';
import { createDesiredEntries, type DesiredEntries, type Obstacle } from './desired.ts';
import type { Installed, Installer } from './installer.ts';
import { createProgress, type Point } from './progress.ts';
import { createWorkQueue, type Work } from './queue.ts';
import { createWantedTunnels } from './wanted-tunnels.ts';

/** What stands between the enforcer and a kernel; absent, the edge is dry: it takes note and enforces nothing. */
export interface Enforcement extends TableMarks {
  readonly installer: Installer;
  readonly marks: { next(): string; fits(mark: string): boolean };
  /** The kernel's table was taken over as it is. */
  adopted(): Promise<void>;
}

export interface EnforcerOptions {
  readonly store: StateStore;
  readonly enforcement: Enforcement | undefined;
  /** Undefined: tunnels are taken note of, and not made. */
  readonly tunnels: TunnelReconciler | undefined;
  /** The last run's tunnels are in this kernel still, as far as they were made: it was not booted since. */
  readonly tunnelsStay: boolean;
  /** What this router cannot do; such rules and filters are among the failures. */
  readonly obstacle: Obstacle;
  readonly batchMilliseconds: number;
  readonly retryMilliseconds: number;
  readonly logger: Logger;
  /** Something to report: up to here all is in force or among the failures. Not told when tunnels alone get on. */
  readonly settled: (applied: string | undefined) => void;
}

export interface EnforcerStatistics {
  readonly rules: number;
  readonly filters: number;
  readonly tunnels: number;
  readonly commits: number;
  readonly lastCommitMilliseconds: number;
  /** From the arrival of the first change of the last batch to its end, without the kernel's part. */
  readonly lastOwnMilliseconds: number;
  readonly adoptions: number;
  readonly fullLoads: number;
}

export interface Enforcer {
  /**
   * Restores what the last run left and brings the kernel to it; without any, touches nothing. Resolves when the table is
   * right: tunnels may take longer, and hold nothing up.
   */
  start(): Promise<void>;
  /** From where the next stream is to go on; undefined asks for a snapshot. */
  readonly cursor: string | undefined;
  /** Everything up to here is in force, or among the failures. */
  readonly applied: string | undefined;
  /**
   * While `applied` is not known after a start: what earlier runs acknowledged up to here is in force still. Rules and
   * filters were found or put in, tunnels were left where they are; how far those are is being looked at.
   */
  readonly resumes: string | undefined;
  /** Tunnels alone hold `applied` back. */
  readonly waitsForTunnels: boolean;
  /** Either holds for filters and tunnels too, not for rules alone. */
  readonly complete: boolean;
  /** Why the kernel does not take transactions at all at present. */
  readonly trouble: string | undefined;
  readonly statistics: EnforcerStatistics;
  snapshot(cursor: string, objects: AgentObjects): void;
  changes(cursor: string, upsert: AgentObjects, remove: readonly string[]): void;
  failures(): AgentFailure[];
  /** Puts the whole table up anew (after drift). */
  reload(): void;
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** A snapshot that differs in more than this part of the entries is loaded whole: dearer text, but one clean table. */
const wholeLoadShare = 0.25;
/** As many changes are one transaction like any other: filters keep what they remember. */
const wholeLoadLeast = 200;

export function createEnforcer(options: EnforcerOptions): Enforcer {
  const { store, enforcement, obstacle, logger } = options;
  let queue = createWorkQueue();
  let desired: DesiredEntries = createDesiredEntries(obstacle);
  const wantedTunnels = createWantedTunnels(options.tunnels);
  const progress = createProgress();
  let state: DesiredState | undefined;
  let refused = new Map<string, string>();
  let trouble: string | undefined;
  /** Named by changes that are not in force yet; 'all' when the table itself is in doubt. */
  let unsettled: Set<string> | 'all' = new Set();
  /** The files miss something: write them whole next time. */
  let storeBehind = false;
  /** What the last run left. */
  let left: (Point & { readonly tunnels: boolean }) | undefined;
  /** The rules and filters of what was left are in the kernel: taken over, or put in. */
  let entriesStand = false;
  let retry: NodeJS.Timeout | undefined;
  const statistics = {
    rules: 0,
    filters: 0,
    tunnels: 0,
    commits: 0,
    lastCommitMilliseconds: 0,
    lastOwnMilliseconds: 0,
    adoptions: 0,
    fullLoads: 0,
  };
  const isRefused = (uuid: string): boolean => refused.has(uuid);

  const reached = () => progress.reached(wantedTunnels.applied);

  const entriesDone = (): void => {
    entriesStand = true;
    progress.entriesDone();
  };

  const resumed = (): Point | undefined => {
    if (left === undefined || !entriesStand || reached() !== undefined) return undefined;
    return options.tunnelsStay || !left.tunnels ? left : undefined;
  };

  const count = (): void => {
    statistics.rules = desired.entries.size - desired.filterCount;
    statistics.filters = desired.filterCount;
    statistics.tunnels = wantedTunnels.tunnels.size;
  };

  /** Takes the work into the desired state; the uuids of the entries that it names. */
  const accept = (work: Work | undefined): string[] => {
    if (work === undefined) return [];
    if (work.snapshot) {
      const { entries, told } = wholeOf(work.snapshot.entries, work.complete);
      const different = desired.differences(entries);
      const untouched = enforcement !== undefined && enforcement.installer.mark === undefined;
      if (untouched || different.length > Math.max(wholeLoadLeast, entries.size * wholeLoadShare)) unsettled = 'all';
      // A whole state is a new start for the refused ones, too.
      const again = [...refused.keys()].filter(told);
      for (const uuid of again) refused.delete(uuid);
      for (const uuid of different) {
        const wire = entries.get(uuid);
        if (wire) desired.set(wire);
        else desired.delete(uuid);
      }
      if (work.complete) wantedTunnels.replace(work.snapshot.tunnels);
      return [...different, ...again];
    }
    const named: string[] = [];
    wantedTunnels.change(work.tunnels, work.remove);
    for (const uuid of work.remove) {
      if (desired.entries.has(uuid)) named.push(uuid);
      desired.delete(uuid);
    }
    for (const [uuid, wire] of work.entries) {
      desired.set(wire);
      named.push(uuid);
    }
    for (const uuid of named) refused.delete(uuid);
    return named;
  };

  /** All entries after a snapshot, and which of them it told of: one of rules alone leaves the filters as they are. */
  const wholeOf = (entries: Map<string, AgentEntry>, complete: boolean) => {
    if (complete) return { entries, told: () => true };
    const filters = [...desired.entries].filter(([, wire]) => isAgentFilter(wire));
    const kept = new Set(filters.map(([uuid]) => uuid));
    return { entries: new Map([...filters, ...entries]), told: (uuid: string) => !kept.has(uuid) };
  };

  /** Writes what is about to be asked of the kernel; resolves when it is on the disk. */
  const remember = (work: Work | undefined, next: DesiredState): Promise<void> => {
    const whole = storeBehind || work?.snapshot !== undefined || state === undefined;
    const mark = next.mark ?? '';
    let written: Promise<void>;
    try {
      written = whole
        ? store.replace(next)
        : store.append({
            cursor: next.cursor,
            mark,
            upsert: work ? [...work.entries.values()] : [],
            ...(work && work.tunnels.size > 0 ? { tunnels: [...work.tunnels.values()] } : {}),
            remove: work ? [...work.remove] : [],
            ...(next.complete ? {} : { complete: false }),
          });
    } catch (error) {
      written = Promise.reject(error);
    }
    return written.then(
      () => {
        if (whole) storeBehind = false;
      },
      (error: Error) => {
        storeBehind = true;
        logger.error({ err: error }, 'the state directory cannot be written; a restart would begin at an older state');
      },
    );
  };

  const install = (named: readonly string[], mark: string): Promise<Installed> => {
    const { installer } = enforcement as Enforcement;
    if (unsettled === 'all') {
      statistics.fullLoads += 1;
      refused = new Map();
      return installer.replace(desired.all(), mark);
    }
    return installer.change(desired.delta(new Set([...unsettled, ...named]), isRefused), mark);
  };

  const settle = (outcome: Installed, named: readonly string[], asked: string): string | undefined => {
    if (!outcome.ok) {
      if (trouble !== outcome.reason) logger.error({ reason: outcome.reason }, 'the kernel takes no changes');
      trouble = outcome.reason;
      if (unsettled !== 'all') unsettled = new Set([...unsettled, ...named]);
      const wasWhole = unsettled === 'all';
      if (outcome.tableInDoubt) unsettled = 'all';
      if (outcome.tableInDoubt && !wasWhole) {
        batcher.wake();
        return asked;
      }
      retry ??= setTimeout(() => {
        retry = undefined;
        batcher.wake();
      }, options.retryMilliseconds);
      return asked;
    }
    trouble = undefined;
    unsettled = new Set();
    for (const [uuid, reason] of outcome.refused) {
      refused.set(uuid, reason);
      logger.warn({ uuid, reason }, 'a rule or filter is not in force');
    }
    if (outcome.kernelMilliseconds > 0) statistics.commits += 1;
    statistics.lastCommitMilliseconds = outcome.kernelMilliseconds;
    return outcome.mark;
  };

  /** Whether the kernel was asked for something. */
  const step = async (): Promise<boolean> => {
    const work = queue.take();
    if (work === undefined && unsettled !== 'all' && unsettled.size === 0) return false;
    const { cursor, complete } = work ?? state ?? {};
    if (cursor === undefined || complete === undefined) return false;
    const arrivedAt = work?.arrivedAt ?? performance.now();
    const named = accept(work);
    if (work) progress.begin({ cursor, complete }, wantedTunnels.token);
    count();
    // The control plane's log went on without anything for this router: no mark, no transaction.
    const nothing = named.length === 0 && unsettled !== 'all' && unsettled.size === 0 && state !== undefined;
    const asked = nothing ? state?.mark : enforcement?.marks.next();
    const next: DesiredState = {
      cursor,
      complete,
      mark: asked,
      refused: Object.fromEntries(refused),
      entries: desired.entries,
      tunnels: wantedTunnels.tunnels,
    };
    const remembered = remember(work, next);
    if (nothing) {
      wantedTunnels.handOver(remembered);
      await remembered;
      state = next;
    } else if (enforcement && asked !== undefined) {
      // During a full load nobody listens for what others do: a transaction about tunnels would pass for drift.
      const isLoad = unsettled === 'all';
      const installing = install(named, asked);
      wantedTunnels.handOver(isLoad ? Promise.all([remembered, installing]) : remembered);
      const outcome = await installing;
      await remembered;
      const mark = settle(outcome, named, asked);
      state = { ...next, mark, refused: Object.fromEntries(refused) };
      if (outcome.ok && (mark !== asked || outcome.refused.size > 0) && mark !== undefined && !storeBehind) {
        await note(mark);
      }
      statistics.lastOwnMilliseconds = performance.now() - arrivedAt - (outcome.ok ? outcome.kernelMilliseconds : 0);
      if (!outcome.ok) {
        options.settled(reached()?.cursor);
        return true;
      }
      logger.debug(
        {
          entries: named.length,
          ownMilliseconds: statistics.lastOwnMilliseconds,
          kernelMilliseconds: statistics.lastCommitMilliseconds,
        },
        'in force',
      );
    } else {
      // Only understanding is tried: nothing is enforced.
      desired.delta(unsettled === 'all' ? desired.entries.keys() : named);
      unsettled = new Set();
      await remembered;
      state = next;
    }
    entriesDone();
    options.settled(reached()?.cursor);
    if (!storeBehind) store.compact(state);
    return !nothing && statistics.lastCommitMilliseconds > 0;
  };

  /** The kernel's mark differs from what was announced: entries were refused, or nothing had to be sent. */
  const note = async (mark: string): Promise<void> => {
    try {
      await store.append({ mark, refused: Object.fromEntries(refused) });
    } catch (error) {
      storeBehind = true;
      logger.error({ err: error }, 'the state directory cannot be written');
    }
  };

  const batcher = createBatcher(options.batchMilliseconds, async () => {
    const committed = await step();
    if (queue.waiting) batcher.wake();
    return committed;
  });

  const restore = async (loaded: LoadedState): Promise<void> => {
    const point = enforcement && (await findAdoptable(loaded, enforcement));
    let leftOut: ReadonlyMap<string, string> = new Map();
    if (point && enforcement) {
      const understood = createDesiredEntries(obstacle, point.entries);
      const isOut = (uuid: string): boolean => uuid in point.refused;
      enforcement.installer.adopt(understood.all(isOut), point.mark);
      leftOut = understood.leftOut;
      await enforcement.adopted();
      statistics.adoptions += 1;
      unsettled = new Set(point.namedLater);
      const [entries, behind] = [point.entries.size, point.namedLater.size];
      logger.info({ entries, behind }, 'took over the table in the kernel');
      entriesStand = true;
    } else {
      unsettled = 'all';
    }
    const objects = { entries: loaded.base.entries, tunnels: loaded.base.tunnels };
    let latest: DesiredState = loaded.base;
    for (const entry of loaded.entries) latest = applyEntry(latest, entry, objects);
    state = latest;
    left = { cursor: latest.cursor, complete: latest.complete, tunnels: objects.tunnels.size > 0 };
    refused = new Map(Object.entries(latest.refused));
    desired = createDesiredEntries(obstacle, objects.entries, leftOut);
    // A state of rules alone that holds no tunnels does not say that there were none.
    if (latest.complete || objects.tunnels.size > 0) wantedTunnels.restore(objects.tunnels);
    count();
    queue = createWorkQueue(latest);
    progress.begin(latest, wantedTunnels.token);
  };

  return {
    async start() {
      const loaded = store.load();
      if (loaded) await restore(loaded);
      if (unsettled === 'all' || unsettled.size > 0) {
        batcher.wake();
        await batcher.idle();
      } else entriesDone();
      void wantedTunnels.start().then(() => options.settled(reached()?.cursor));
    },
    get cursor() {
      return queue.cursor;
    },
    get applied() {
      return reached()?.cursor;
    },
    get resumes() {
      return resumed()?.cursor;
    },
    get waitsForTunnels() {
      return progress.waitsForTunnels(wantedTunnels.applied);
    },
    get complete() {
      return (reached() ?? resumed())?.complete === true;
    },
    get trouble() {
      return trouble;
    },
    statistics,
    snapshot(cursor, objects) {
      queue.snapshot(cursor, objects, performance.now());
      batcher.wake();
    },
    changes(cursor, upsert, remove) {
      queue.changes(cursor, upsert, remove, performance.now());
      batcher.wake();
    },
    failures() {
      const failures: AgentFailure[] = [];
      for (const [uuid, reason] of desired.leftOut) failures.push({ uuid, reason });
      for (const [uuid, reason] of refused) failures.push({ uuid, reason });
      failures.push(...(options.tunnels?.failures() ?? []));
      return failures;
    },
    reload() {
      unsettled = 'all';
      batcher.wake();
    },
    idle: () => batcher.idle(),
    async stop() {
      clearTimeout(retry);
      await batcher.stop();
      await store.close();
    },
  };
}
