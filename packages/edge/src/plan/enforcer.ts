/**
 * Makes the kernel follow the desired state: takes what arrives, remembers it on disk, has it installed, says what is in
 * force and what is not. The one place where queue, files and installer meet; the order here is what makes a crash at
 * any moment harmless:
 *
 *   journal written (names the mark) → kernel's transaction (carries the mark) → acknowledged once both are done.
 *
 * Never takes rules out because it stops, crashes or hears nothing.
 */
import type { AgentFailure, AgentRule } from '@levee/contract/agent.ts';
import type { Logger } from 'pino';
import { applyEntry, type DesiredState, isChange } from '../state/entry.ts';
import type { LoadedState, StateStore } from '../state/store.ts';
import { createBatcher } from './batcher.ts';
import { createDesiredRules, type DesiredRules, type Obstacle } from './desired.ts';
import type { Installed, Installer } from './installer.ts';
import { createWorkQueue, type Work } from './queue.ts';

/** What stands between the enforcer and a kernel; absent, the edge is dry: it takes note and enforces nothing. */
export interface Enforcement {
  readonly installer: Installer;
  readonly marks: { next(): string; fits(mark: string): boolean };
  readMark(): Promise<string | undefined>;
  /** The kernel's table was taken over as it is. */
  adopted(): Promise<void>;
}

export interface EnforcerOptions {
  readonly store: StateStore;
  readonly enforcement: Enforcement | undefined;
  /** What this router cannot do; such rules are among the failures. */
  readonly obstacle: Obstacle;
  readonly batchMilliseconds: number;
  readonly retryMilliseconds: number;
  readonly logger: Logger;
  /** Something to report: up to here everything is in force or among the failures. */
  readonly settled: (applied: string | undefined) => void;
}

export interface EnforcerStatistics {
  readonly rules: number;
  readonly commits: number;
  readonly lastCommitMilliseconds: number;
  /** From the arrival of the first change of the last batch to its end, without the kernel's part. */
  readonly lastOwnMilliseconds: number;
  readonly adoptions: number;
  readonly fullLoads: number;
}

export interface Enforcer {
  /** Restores what the last run left and brings the kernel to it; without any, touches nothing. */
  start(): Promise<void>;
  /** Of the last thing that was handed over. */
  readonly cursor: string | undefined;
  /** Everything up to here is in force, or among the failures. */
  readonly applied: string | undefined;
  /** Why the kernel does not take transactions at all at present. */
  readonly trouble: string | undefined;
  readonly statistics: EnforcerStatistics;
  snapshot(cursor: string, rules: readonly AgentRule[]): void;
  changes(cursor: string, upsert: readonly AgentRule[], remove: readonly string[]): void;
  failures(): AgentFailure[];
  /** Puts the whole table up anew (after drift). */
  reload(): void;
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** A snapshot that differs in more than this part of the rules is loaded whole: dearer text, but one clean table. */
const wholeLoadShare = 0.25;

export function createEnforcer(options: EnforcerOptions): Enforcer {
  const { store, enforcement, obstacle, logger } = options;
  let queue = createWorkQueue();
  let desired: DesiredRules = createDesiredRules(obstacle);
  let state: DesiredState | undefined;
  let refused = new Map<string, string>();
  let applied: string | undefined;
  let trouble: string | undefined;
  /** Named by changes that are not in force yet; 'all' when the table itself is in doubt. */
  let unsettled: Set<string> | 'all' = new Set();
  /** The files miss something: write them whole next time. */
  let storeBehind = false;
  let retry: NodeJS.Timeout | undefined;
  const statistics = {
    rules: 0,
    commits: 0,
    lastCommitMilliseconds: 0,
    lastOwnMilliseconds: 0,
    adoptions: 0,
    fullLoads: 0,
  };
  const isRefused = (uuid: string): boolean => refused.has(uuid);

  /** Takes the work into the desired state; the uuids that it names. */
  const accept = (work: Work | undefined): string[] => {
    if (work === undefined) return [];
    if (work.snapshot) {
      const different = desired.differences(work.snapshot);
      const untouched = enforcement !== undefined && enforcement.installer.mark === undefined;
      if (untouched || different.length > work.snapshot.size * wholeLoadShare) unsettled = 'all';
      // A whole state is a new start for the refused ones, too.
      const again = [...refused.keys()];
      refused = new Map();
      for (const uuid of different) {
        const rule = work.snapshot.get(uuid);
        if (rule) desired.set(rule);
        else desired.delete(uuid);
      }
      return [...different, ...again];
    }
    for (const uuid of work.remove) desired.delete(uuid);
    for (const rule of work.upsert.values()) desired.set(rule);
    const named = [...work.remove, ...work.upsert.keys()];
    for (const uuid of named) refused.delete(uuid);
    return named;
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
            upsert: work ? [...work.upsert.values()] : [],
            remove: work ? [...work.remove] : [],
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
      logger.warn({ uuid, reason }, 'a rule is not in force');
    }
    if (outcome.kernelMilliseconds > 0) statistics.commits += 1;
    statistics.lastCommitMilliseconds = outcome.kernelMilliseconds;
    return outcome.mark;
  };

  /** Whether the kernel was asked for something. */
  const step = async (): Promise<boolean> => {
    const work = queue.take();
    if (work === undefined && unsettled !== 'all' && unsettled.size === 0) return false;
    const cursor = work?.cursor ?? state?.cursor;
    if (cursor === undefined) return false;
    const arrivedAt = work?.arrivedAt ?? performance.now();
    const named = accept(work);
    statistics.rules = desired.rules.size;
    // The control plane's log went on without anything for this router: no mark, no transaction.
    const nothing = named.length === 0 && unsettled !== 'all' && unsettled.size === 0 && state !== undefined;
    const asked = nothing ? state?.mark : enforcement?.marks.next();
    const next: DesiredState = { cursor, mark: asked, refused: Object.fromEntries(refused), rules: desired.rules };
    const remembered = remember(work, next);
    if (nothing) {
      await remembered;
      state = next;
    } else if (enforcement && asked !== undefined) {
      const outcome = await install(named, asked);
      await remembered;
      const mark = settle(outcome, named, asked);
      state = { ...next, mark, refused: Object.fromEntries(refused) };
      if (outcome.ok && (mark !== asked || outcome.refused.size > 0) && mark !== undefined && !storeBehind) {
        await note(mark);
      }
      statistics.lastOwnMilliseconds = performance.now() - arrivedAt - (outcome.ok ? outcome.kernelMilliseconds : 0);
      if (!outcome.ok) {
        options.settled(applied);
        return true;
      }
      logger.debug(
        {
          rules: named.length,
          ownMilliseconds: statistics.lastOwnMilliseconds,
          kernelMilliseconds: statistics.lastCommitMilliseconds,
        },
        'in force',
      );
    } else {
      // Only understanding is tried: nothing is enforced.
      desired.delta(unsettled === 'all' ? desired.rules.keys() : named);
      unsettled = new Set();
      await remembered;
      state = next;
    }
    applied = cursor;
    options.settled(cursor);
    if (!storeBehind) store.compact(state);
    return !nothing && statistics.lastCommitMilliseconds > 0;
  };

  /** The kernel's mark differs from what was announced: rules were refused, or nothing had to be sent. */
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
      const understood = createDesiredRules(obstacle, point.rules);
      const isOut = (uuid: string): boolean => uuid in point.refused;
      enforcement.installer.adopt(understood.all(isOut), point.mark);
      leftOut = understood.leftOut;
      await enforcement.adopted();
      statistics.adoptions += 1;
      unsettled = new Set(point.namedLater);
      logger.info({ rules: point.rules.size, behind: point.namedLater.size }, 'took over the table in the kernel');
    } else {
      unsettled = 'all';
    }
    const rules = loaded.base.rules;
    let latest: DesiredState = loaded.base;
    for (const entry of loaded.entries) latest = applyEntry(latest, entry, rules);
    state = latest;
    refused = new Map(Object.entries(latest.refused));
    desired = createDesiredRules(obstacle, rules, leftOut);
    statistics.rules = rules.size;
    queue = createWorkQueue(latest.cursor);
  };
  return {
    async start() {
      const loaded = store.load();
      if (loaded === undefined) return;
      await restore(loaded);
      if (unsettled === 'all' || unsettled.size > 0) {
        batcher.wake();
        await batcher.idle();
        return;
      }
      applied = queue.cursor;
      options.settled(applied);
    },
    get cursor() {
      return queue.cursor;
    },
    get applied() {
      return applied;
    },
    get trouble() {
      return trouble;
    },
    statistics,
    snapshot(cursor, rules) {
      queue.snapshot(cursor, rules, performance.now());
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

interface AdoptionPoint {
  readonly mark: string;
  readonly refused: Readonly<Record<string, string>>;
  readonly rules: Map<string, AgentRule>;
  /** Changed after that point: to be installed. */
  readonly namedLater: ReadonlySet<string>;
}

/** The last point of the journal whose mark the kernel's table bears. */
async function findAdoptable(loaded: LoadedState, enforcement: Enforcement): Promise<AdoptionPoint | undefined> {
  const mark = await enforcement.readMark();
  if (mark === undefined || !enforcement.marks.fits(mark)) return undefined;
  let last = loaded.base.mark === mark ? 0 : -1;
  for (const [index, entry] of loaded.entries.entries()) if (entry.mark === mark) last = index + 1;
  if (last === -1) return undefined;
  const rules = new Map(loaded.base.rules);
  let at: DesiredState = loaded.base;
  for (const entry of loaded.entries.slice(0, last)) at = applyEntry(at, entry, rules);
  const namedLater = new Set<string>();
  for (const entry of loaded.entries.slice(last)) {
    if (!isChange(entry)) continue;
    for (const rule of entry.upsert) namedLater.add(rule.uuid);
    for (const uuid of entry.remove) namedLater.add(uuid);
  }
  return { mark, refused: at.refused, rules, namedLater };
}
