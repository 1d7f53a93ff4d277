/**
 * The router agent, wired: control plane → desired state → kernel → reports. Owns start and stop; stopping, by whatever
 * means, leaves rules, filters and tunnels in the kernel as they are.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentEnforcement } from '@levee/contract/agent.ts';
import { type Compiler, createCompiler } from '@levee/core/nftables/compiler.ts';
import { tableName } from '@levee/core/nftables/names.ts';
import { lockDirectory } from '@levee/follow/directory-lock.ts';
import { type Endpoint, parseEndpoints } from '@levee/follow/endpoint.ts';
import { createKeyAlarm } from '@levee/follow/key-alarm.ts';
import { defaultIntervals, type EdgeConfig, type EdgeIntervals } from './config.ts';
import { forgetWindows } from './drivers/conntrack/forget-windows.ts';
import { chooseKernel, type KernelAccess } from './drivers/nft/choose.ts';
import { type Counters, createCounters } from './plan/counters.ts';
import { watchDrift } from './plan/drift.ts';
import { createEnforcer, type Enforcement, type EnforcerStatistics } from './plan/enforcer.ts';
import { tryFilterKinds, untriedKinds } from './plan/filter-kinds.ts';
import { ingressObstacle } from './plan/ingress.ts';
import { createInstaller } from './plan/installer.ts';
import { createMarks, readMark } from './plan/mark.ts';
import { openStateStore } from './state/store.ts';
import { isSamePlace, openTableRecord, type TableRecord, thisPlace } from './state/table-record.ts';
import { notForwarded, readForwarding } from './status/forwarding.ts';
import { describeLeft, lookForLeft } from './status/left-table.ts';
import { describeEnforced, describeEnforcement, describeStatus } from './status/status.ts';
import { keyFileName } from './sync/enroll.ts';
import { createReporter } from './sync/reporter.ts';
import { followStream } from './sync/stream.ts';
import { openTunnels } from './tunnels/open.ts';

export type { EdgeConfig, EdgeIntervals } from './config.ts';
export { commandInNamespace } from './netns.ts';
export { type Enrolled, enroll } from './sync/enroll.ts';

export interface EdgeHandle {
  readonly enforcement: AgentEnforcement;
  readonly connected: boolean;
  /** Everything up to this cursor is in force (kernel), or was taken note of (dry). */
  readonly applied: string | undefined;
  readonly statistics: EnforcerStatistics;
  /** Leaves the kernel as it is. */
  stop(): Promise<void>;
}

/** A last report may take this long when the edge is stopped. */
const stopGraceMilliseconds = 1_000;
const reportAnswerMilliseconds = 10_000;
const keyRefused =
  "the control plane does not accept this router's key: enrol the router again (levee router enroll) and restart the edge; until then the rules in force stay as they are and changes do not arrive";

/**
 * Resolves once what the last run left is in force again; the control plane need not be there. Throws an Error with a
 * sentence for the operator when the settings are wrong, the state directory is in use, or `driver: 'kernel'` cannot be.
 */
export async function startEdge(config: EdgeConfig): Promise<EdgeHandle> {
  const endpoints = parseEndpoints(config.controlPlanes);
  const key = config.key ?? readKey(config.keyFile ?? join(config.stateDirectory, keyFileName));
  const access = await openAccess(config);
  const lock = lockDirectory(config.stateDirectory, 'edge.lock');
  if (!lock.ok) {
    await closeAccess(access.kernel);
    throw new Error(`${config.stateDirectory} is in use by another edge (process ${lock.holder || 'unknown'})`);
  }
  const giveBack = async (): Promise<void> => {
    await closeAccess(access.kernel);
    lock.release();
  };
  try {
    return await run(config, { endpoints, key, access, giveBack });
  } catch (error) {
    await giveBack();
    throw error;
  }
}

/** What an edge holds before it does anything. */
interface Held {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  readonly access: Access;
  /** The kernel and the state directory. */
  giveBack(): Promise<void>;
}

async function run(config: EdgeConfig, { endpoints, key, access, giveBack }: Held): Promise<EdgeHandle> {
  const { logger } = config;
  const intervals: EdgeIntervals = { ...defaultIntervals, ...config.intervals };
  const counters = access.kernel?.kernel && createCounters(access.kernel.kernel);
  const keyAlarm = createKeyAlarm(logger, keyRefused);
  const record = openTableRecord(config.stateDirectory);
  const noted = record.read();
  const newCompiler = (): Compiler => createCompiler({ ingressDevices: config.ingressDevices ?? [] });
  const kinds = access.kernel ? await tryFilterKinds(access.kernel.driver, newCompiler) : untriedKinds;
  const marks = createMarks({ ingressDevices: config.ingressDevices ?? [], kinds: kinds.meaning });
  const enforcement = access.kernel && enforcementOf(access.kernel, counters, record, newCompiler, marks, config);
  const tunnels =
    access.kernel &&
    openTunnels(
      {
        nftVersion: access.kernel.driver.version,
        checkMilliseconds: intervals.tunnelCheckMilliseconds,
        retryMilliseconds: intervals.retryMilliseconds,
        probeMilliseconds: intervals.probeMilliseconds,
        logger,
      },
      { changed: () => reporter.acknowledge() },
    );
  const needsDevices = ingressObstacle(config.ingressDevices ?? []);
  let left: string | undefined;
  const lookAround = (): void => {
    if (access.dryReason === undefined) return;
    const before = left;
    left = describeLeft(lookForLeft(record));
    if (left !== before) logger.warn({ reason: left ?? 'no older table is in force' }, 'the edge enforces nothing');
  };
  lookAround();
  const describe = (): AgentEnforcement => describeEnforcement(access.dryReason, enforcer.trouble, left);
  const enforcer = createEnforcer({
    store: openStateStore(config.stateDirectory),
    enforcement,
    tunnels,
    tunnelsStay: noted !== undefined && isSamePlace(noted, thisPlace()),
    obstacle: (entry) => needsDevices(entry) ?? kinds.obstacle(entry),
    batchMilliseconds: intervals.batchMilliseconds,
    retryMilliseconds: intervals.retryMilliseconds,
    logger,
    settled: () => reporter.acknowledge(),
  });
  const reporter = createReporter({
    endpoints,
    key,
    run: randomUUID(),
    reconnectMilliseconds: intervals.reconnectMilliseconds,
    answerMilliseconds: reportAnswerMilliseconds,
    logger,
    keyAlarm,
    applied: () => enforcer.applied,
    resumes: () => enforcer.resumes,
    waitsForTunnels: () => enforcer.waitsForTunnels,
    enforcement: describe,
    capabilities: () => (enforcer.complete ? [...kinds.capabilities, ...(tunnels?.capabilities ?? [])] : []),
    failures: () => enforcer.failures(),
  });
  logger.info(
    { enforcement: describe() },
    describeEnforced(access.dryReason, kinds.enforced, tunnels?.capabilities ?? []),
  );
  if (access.kernel) warnOfForwarding(config);
  try {
    await enforcer.start();
  } catch (error) {
    await tunnels?.stop();
    throw error;
  }

  const drift =
    access.kernel?.kernel &&
    watchDrift(access.kernel.kernel, intervals.driftMilliseconds, (reason) => {
      logger.warn({ reason }, 'the table in the kernel is put up anew');
      enforcer.reload();
    });
  const stream = followStream({
    endpoints,
    key,
    silenceMilliseconds: intervals.silenceMilliseconds,
    reconnectMilliseconds: intervals.reconnectMilliseconds,
    logger,
    keyAlarm,
    cursor: () => enforcer.cursor,
    hello(hello, endpoint) {
      logger.info({ router: hello.router.name, location: hello.router.location, endpoint: endpoint.text }, 'connected');
      reporter.prefer(endpoint);
      reporter.acknowledge();
    },
    snapshot: (cursor, objects) => enforcer.snapshot(cursor, objects),
    changes: (cursor, upsert, remove) => enforcer.changes(cursor, upsert, remove),
  });

  let reporting: Promise<void> = Promise.resolve();
  const account = async (): Promise<void> => {
    try {
      lookAround();
      if (counters && enforcement) await counters.read(() => enforcement.installer.compiler);
      const status = await describeStatus({
        nft: access.kernel && { version: access.kernel.driver.version, driver: access.kernel.driver.name },
        counted: counters !== undefined,
        statistics: enforcer.statistics,
        drift: () => drift?.count ?? 0,
        tunnels: tunnels?.status(),
      });
      reporter.account(counters?.take() ?? [], tunnels?.probes() ?? [], { ...status });
    } catch (error) {
      logger.error({ err: error }, 'the counters could not be read');
    }
  };
  const schedule = (): NodeJS.Timeout =>
    setTimeout(() => {
      reporting = account().then(() => {
        if (!stopping) timer = schedule();
      });
    }, intervals.reportMilliseconds);
  let stopping = false;
  let timer = schedule();
  return {
    get enforcement() {
      return describe();
    },
    get connected() {
      return stream.connected;
    },
    get applied() {
      return enforcer.applied;
    },
    statistics: enforcer.statistics,
    async stop() {
      if (stopping) return;
      stopping = true;
      clearTimeout(timer);
      drift?.stop();
      const connected = stream.connected;
      await stream.stop();
      await reporting;
      await enforcer.stop();
      await tunnels?.stop();
      await reporter.stop(connected ? stopGraceMilliseconds : 0);
      await giveBack();
    },
  };
}

interface Access {
  readonly kernel: KernelAccess | undefined;
  /** Why there is none, where there is none. */
  readonly dryReason: string | undefined;
}

async function openAccess(config: EdgeConfig): Promise<Access> {
  if (config.driver === 'dry') return { kernel: undefined, dryReason: 'dry by configuration' };
  const choice = await chooseKernel(tableName);
  if (choice.ok) return { kernel: choice.access, dryReason: undefined };
  if (config.driver === 'kernel') throw new Error(choice.reason);
  return { kernel: undefined, dryReason: choice.reason };
}

/** Nobody has to be a router at once; nothing else looks wrong when it is not. */
function warnOfForwarding({ logger }: EdgeConfig): void {
  const families = notForwarded(readForwarding());
  if (families.length === 0) return;
  logger.warn(
    { forwarding: readForwarding() },
    `${families.join(' and ')} forwarding is switched off on this router: none of it reaches protected destinations`,
  );
}

async function closeAccess(access: KernelAccess | undefined): Promise<void> {
  await access?.driver.close();
  access?.kernel?.close();
}

function enforcementOf(
  { driver, kernel }: KernelAccess,
  counters: Counters | undefined,
  record: TableRecord,
  newCompiler: () => Compiler,
  marks: Enforcement['marks'],
  { logger }: EdgeConfig,
): Enforcement {
  const noteTable = (): void => {
    try {
      record.note();
    } catch (error) {
      logger.error({ err: error }, 'the state directory cannot be written; a dry run would not know of the table');
    }
  };
  const installer = createInstaller({
    driver,
    createCompiler: newCompiler,
    newMark: marks.next,
    readMark: () => readMark(driver, kernel),
    beforeFlush(chains, compiler) {
      noteTable();
      return counters?.beforeFlush(chains, compiler);
    },
    afterFlush: (chains) => counters?.afterFlush(chains),
    async beforeTracking(prefixes) {
      try {
        await forgetWindows(prefixes);
      } catch (error) {
        logger.warn({ err: error }, 'connections that conntrack has known for long may be taken for invalid');
      }
    },
    async own(work, whole) {
      kernel?.beginOwn(whole);
      try {
        return await work();
      } finally {
        kernel?.endOwn();
      }
    },
  });
  return {
    installer,
    marks,
    readMark: () => readMark(driver, kernel),
    async adopted() {
      noteTable();
      await counters?.rebase();
    },
  };
}

function readKey(path: string): string {
  try {
    const key = readFileSync(path, 'utf8').trim();
    if (key !== '') return key;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new Error(`the router's key cannot be read from ${path} (${code}); enrol the router first`);
  }
  throw new Error(`${path} holds no router key; enrol the router first`);
}
