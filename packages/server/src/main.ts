/**
 * Wires the control plane of one process: database, schema, operator, change log, routers, sweep, HTTP. The only file of the server that knows all
 * of its parts. Never reads the environment and never ends the process: that is the command's.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import type { Logger } from 'pino';
import { startAgents } from './agents/agents.ts';
import { agentPaths } from './agents/routes.ts';
import { createExabgpSpeaker } from './backends/bgp/exabgp/exabgp-speaker.ts';
import { createGobgpSpeaker } from './backends/bgp/gobgp/gobgp-speaker.ts';
import type { BgpSpeaker } from './backends/bgp/port.ts';
import { startBgp } from './backends/bgp/reconciler.ts';
import { type DnsServer, type DnsServerOptions, startDnsServer } from './backends/dns/dns-server.ts';
import { startForwardChecks } from './backends/rdns/forward-check.ts';
import { startRdnsReconciler } from './backends/rdns/reconciler.ts';
import { createDispatcher } from './backends/webhook/dispatcher.ts';
import type { ResolveHost } from './backends/webhook/resolve-host.ts';
import { createTargetJudge } from './backends/webhook/target.ts';
import { defaultFlowspecBudget } from './commands/mitigate-attack.ts';
import { startDetectors } from './detectors/detectors.ts';
import { detectorPaths } from './detectors/routes.ts';
import { createAttackTimings } from './events/attack-timings.ts';
import { startEvents } from './events/events.ts';
import { createApi } from './http/api.ts';
import { eventRenderers } from './http/event-objects.ts';
import { ensureOperator } from './operator-key.ts';
import { startChangeTail } from './store/change-tail.ts';
import { type Database, type DatabaseAddress, openDatabase } from './store/database.ts';
import { type EmbeddedPostgres, startEmbedded } from './store/embedded/embedded-postgres.ts';
import { migrate } from './store/migrate.ts';
import { startSweeper } from './sweep/sweeper.ts';

export interface ServerConfig {
  readonly listen: { readonly host: string; readonly port: number };
  /** Addresses and subnets from which X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Made with mode 0700 when missing. */
  readonly dataDirectory: string;
  /** Absent: an embedded PostgreSQL in the data directory. */
  readonly databaseUrl?: string | undefined;
  /** Key of the operator of a new installation; absent: one is made. */
  readonly operatorKey?: string | undefined;
  /** Requests a minute of each key; 0 or absent: any number. */
  readonly rateLimit?: number | undefined;
  /** Where the addresses inside tunnels come from; absent: core's usual pools. */
  readonly innerPools?: InnerPools | undefined;
  /** How long the audit log keeps its entries; absent: for ever. */
  readonly auditKeepDays?: number | undefined;
  /** How long timelines, packets and profiles of attacks are kept; absent: for ever, as far as there is room. */
  readonly attackKeepDays?: number | undefined;
  /** FlowSpec routes that may be announced at once; absent: the usual budget. */
  readonly flowspecBudget?: number | undefined;
  /** `address:port` of resolvers for forward confirmation; absent: the system's. */
  readonly dnsResolvers?: readonly string[] | undefined;
  /** Absent: no embedded DNS server. */
  readonly dns?: Pick<DnsServerOptions, 'listen' | 'answersPerSecond'> | undefined;
  /** How flowrules are announced. Absent, or without a speaker: nowhere. */
  readonly bgp?: BgpConfig | undefined;
  /** Subnets that webhooks may reach although they are not public. */
  readonly webhookAllow?: readonly string[] | undefined;
  /** From the names of webhooks' targets to addresses; absent: DNS. */
  readonly resolveHost?: ResolveHost | undefined;
  readonly log: Logger;
}

export interface BgpConfig {
  /** `unix:///path` or `host:port` of gobgpd's interface. */
  readonly gobgp?: string | undefined;
  /** Instead: the unix socket to which ExaBGP's process comes. */
  readonly exabgp?: string | undefined;
  readonly routes: RouteOptions;
}

export interface ServerHandle {
  /** `http://127.0.0.1:8080`, with the port that was really taken. */
  readonly address: string;
  /** Same routes, mode 0600. */
  readonly socketPath: string;
  readonly database: Database;
  /** Absent: not configured. */
  readonly dns: DnsServer | undefined;
  /** At the one start that made it. */
  readonly newOperatorKey: string | undefined;
  /** Routers were written past the interface: states know of them when it resolves. Throws what the driver throws. */
  routersChanged(): Promise<void>;
  /** Finishes what is under way, then closes everything. Idempotent. */
  close(): Promise<void>;
}

export type StartResult =
  | { readonly ok: true; readonly server: ServerHandle }
  /** For the person who started it. */
  | { readonly ok: false; readonly message: string };

const lastUsesEveryMilliseconds = 5_000;

/** What cannot work comes back as a message; throws only what is a bug or a database that is away. */
export async function startServer(config: ServerConfig): Promise<StartResult> {
  const { log } = config;
  const undo: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };
  try {
    const result = await start(config, undo, close);
    if (!result.ok) await close();
    return result;
  } catch (error) {
    await close().catch((failure: unknown) => log.error({ err: failure }, 'closing after a failed start'));
    throw error;
  }
}

async function start(
  config: ServerConfig,
  undo: (() => Promise<unknown>)[],
  close: () => Promise<void>,
): Promise<StartResult> {
  const { log } = config;
  await mkdir(config.dataDirectory, { recursive: true, mode: 0o700 });
  let address: DatabaseAddress;
  if (config.databaseUrl === undefined) {
    const started = await startEmbedded({ dataDirectory: config.dataDirectory, log: (text) => log.info(text) });
    if (!started.ok) return started;
    const embedded: EmbeddedPostgres = started.postgres;
    undo.push(() => embedded.stop());
    address = embedded.address;
  } else {
    address = { url: config.databaseUrl };
  }
  const database = openDatabase(address);
  undo.push(() => database.close());
  const migrated = await migrate(database);
  if (!migrated.ok) return migrated;
  const operator = await ensureOperator(database.pool, config.dataDirectory, config.operatorKey);
  if (!operator.ok) return operator;

  const tell = (text: string) => log.info(text);
  const tail = await startChangeTail(database, { log: tell, warn: (text) => log.warn(text) });
  undo.push(() => tail.stop());
  const agents = await startAgents(database, tail, {
    log: tell,
    logError: (error, message) => log.error({ err: error }, message),
  });
  const wake = () => tail.wake();
  const { flowspecBudget = defaultFlowspecBudget } = config;
  const hasSpeaker = config.bgp?.gobgp !== undefined || config.bgp?.exabgp !== undefined;
  const mitigation = {
    flowspecBudget,
    hasSpeaker,
    logError: (error: unknown, message: string) => log.error({ err: error }, message),
  };
  const { auditKeepDays, attackKeepDays } = config;
  const sweeper = startSweeper(database.pool, {
    committed: wake,
    log: tell,
    auditKeepDays,
    attackKeepDays,
    mitigation,
  });
  undo.push(() => sweeper.stop());
  const leave = agents.registry.onChange(() => sweeper.wake());
  // A flowrule may be in the way of what a rule accepts from now on; measures follow policies and who holds what.
  const leaveTail = tail.subscribe({
    changes({ entries, unsettled, upsert }) {
      const reviews = [...entries, ...unsettled].some(({ kind }) => kind === 'detection_policy' || kind === 'subnet');
      const accepts = [...upsert.values()].some(({ fields }) => fields.includes('"action":"accept"'));
      if (accepts || reviews) sweeper.wake();
    },
    gap: () => sweeper.wake(),
  });

  const detectors = startDetectors(database, tail, {
    committed: wake,
    mitigation,
    log: tell,
    logError: (error, message) => log.error({ err: error }, message),
  });

  const rdns = await startRdnsReconciler({ database, tail, log: tell, servesEmbedded: config.dns !== undefined });
  const forwardChecks = startForwardChecks(database.pool, {
    resolvers: config.dnsResolvers,
    committed: wake,
    log: tell,
  });

  if (config.bgp?.gobgp !== undefined && config.bgp.exabgp !== undefined) {
    return { ok: false, message: 'there are two BGP speakers (LEVEE_GOBGP and LEVEE_BGP_EXABGP): leave one out' };
  }
  const speaker = config.bgp && createSpeaker(config.bgp);
  const bgp =
    config.bgp &&
    speaker &&
    startBgp({ database, tail, speaker, routes: config.bgp.routes, log: (text) => log.warn(text) });

  const judge = createTargetJudge({ allow: config.webhookAllow, resolve: config.resolveHost });
  const webhooks = createDispatcher({ pool: database.pool, judge });
  const { registry, view } = agents;
  const timings = createAttackTimings({ pool: database.pool, tail, registry, view, committed: wake });
  const events = startEvents(database, {
    tail,
    registry: agents.registry,
    view: agents.view,
    renderers: eventRenderers({ pool: database.pool, states: agents.view, hasSpeaker }),
    tasks: [...webhooks.tasks, timings],
    log: tell,
  });

  const api = createApi({
    pool: database.pool,
    states: agents.view,
    eventStreams: events.streams,
    webhooks: { judge, wake: (...why) => webhooks.wake(...why) },
    wake,
    waitApplied: (...change) => agents.view.waitApplied(...change),
    routersChanged: () => agents.registry.refresh(),
    rdnsSettled: rdns.settled,
    secondaries: (zone) => (dns?.ok === true ? dns.dns.secondaries(zone) : []),
    log,
    operatorKey: config.operatorKey,
    trustedProxies: config.trustedProxies,
    rateLimit: config.rateLimit,
    flowspecBudget,
    bgpSpeaker: hasSpeaker,
    innerPools: config.innerPools,
    metrics: {
      tail,
      registry: agents.registry,
      hasSpeaker,
      streams: () => ({ routers: agents.hub.streams, detectors: detectors.streams.count }),
    },
    isReady: async () => (await database.pool.query('select 1')).rowCount === 1,
    mount(app) {
      agents.mount(app);
      detectors.mount(app);
    },
    mounted: [...agentPaths, ...detectorPaths],
  });
  const socketPath = join(config.dataDirectory, 'control.sock');
  undo.push(() => api.close());
  // Before the listeners close, which wait for open answers: a stream is one that never ends by itself.
  undo.push(async () => {
    leave();
    leaveTail();
    await events.stop();
    await Promise.all([rdns.stop(), forwardChecks.stop(), bgp?.stop()]);
    await Promise.all([agents.stop(), detectors.stop()]);
  });
  const dns =
    config.dns &&
    (await startDnsServer({
      ...config.dns,
      source: rdns.zones,
      warn: (text) => log.warn(text),
      logError: (error, message) => log.error({ err: error }, message),
    }));
  if (dns?.ok === false) return { ok: false, message: `${dns.message} (LEVEE_DNS_LISTEN: elsewhere, or off)` };
  if (dns !== undefined) undo.push(() => dns.dns.stop());
  let port: number;
  try {
    ({ port } = await api.listen(config.listen, socketPath));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined || !listenFaults.has(code)) throw error;
    return { ok: false, message: `cannot listen on ${config.listen.host}:${config.listen.port}: ${message}` };
  }
  const uses = setInterval(() => {
    api.keys.flush().catch((error: unknown) => log.debug({ err: error }, 'last uses of keys are kept for later'));
  }, lastUsesEveryMilliseconds);
  undo.push(async () => {
    clearInterval(uses);
    await api.keys.flush().catch(() => {});
  });
  const host = config.listen.host.includes(':') ? `[${config.listen.host}]` : config.listen.host;
  return {
    ok: true,
    server: {
      address: `http://${host}:${port}`,
      socketPath,
      database,
      dns: dns?.dns,
      newOperatorKey: operator.made,
      routersChanged: () => agents.registry.refresh(),
      close,
    },
  };
}

function createSpeaker({ gobgp, exabgp, routes }: BgpConfig): BgpSpeaker | undefined {
  if (gobgp !== undefined) return createGobgpSpeaker({ target: gobgp, mark: routes.mark });
  return exabgp === undefined ? undefined : createExabgpSpeaker(exabgp);
}

const listenFaults = new Set(['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'ENAMETOOLONG', 'ENOTFOUND', 'EINVAL']);
