/**
 * `/metrics`, as Prometheus reads it: what this replica does, and what all of them know together. Asks the database once a
 * page, and never more than one page at a time. Labels are few and bounded: operations, exporters and detectors by name; never an
 * account, a destination or any other address.
 */
import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type LabelValues, Registry } from 'prom-client';
import type { RouterRegistry } from '../agents/router-registry.ts';
import { executorOf } from '../commands/executor.ts';
import { type LiveFigures, listExporters, readFigures } from '../commands/exporters.ts';
import type { Failure } from '../commands/outcome.ts';
import type { ChangeTail } from '../store/change-tail.ts';
import { type MetricFigures, readMetricFigures } from '../store/metric-figures.ts';
import { answerInTime } from './answer-deadline.ts';
import type { Authenticated, KeyRing } from './authentication.ts';

export interface MetricsPort {
  readonly tail: Pick<ChangeTail, 'cursor' | 'connected'>;
  readonly registry: Pick<RouterRegistry, 'routers'>;
  /** A BGP speaker is configured. */
  readonly hasSpeaker: boolean;
  /** Of agents and detectors, connected to this replica. */
  readonly streams: () => { readonly routers: number; readonly detectors: number };
}

export interface MetricsServices extends MetricsPort {
  readonly pool: pg.Pool;
  readonly keys: KeyRing;
  readonly sendFailure: (reply: FastifyReply, failure: Failure) => void;
  readonly sendException: (reply: FastifyReply, error: unknown) => void;
}

export const metricsPath = '/metrics';

/** A router that has not reported for so long is silent. */
const SILENT_MILLISECONDS = 60_000;
/** Scrapers wait ten seconds; a database that does not answer in this time is away. */
const DATABASE_MILLISECONDS = 2_000;
const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

export function registerMetrics(app: FastifyInstance, services: MetricsServices): void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'levee_http_requests_total',
    help: 'Answered requests, by route and class of status.',
    labelNames: ['route', 'status'],
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'levee_http_request_duration_seconds',
    help: 'From the arrival of a request to the end of its answer; streams are left out.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
    registers: [registry],
  });
  const page = createFigures(registry, services);

  app.addHook('onResponse', (request, reply, done) => {
    requests.inc({ route: routeOf(request), status: statusClasses[Math.floor(reply.statusCode / 100) - 1] ?? '5xx' });
    if (!isStream(request)) durations.observe(reply.elapsedTime / 1000);
    done();
  });
  let writing: Promise<string> | undefined;
  const write = (): Promise<string> => {
    writing ??= page
      .read()
      .then(() => registry.metrics())
      .finally(() => {
        writing = undefined;
      });
    return writing;
  };
  app.get(metricsPath, { onRequest: createGuard(services) }, async (_request, reply) => {
    try {
      const text = await answerInTime(write());
      return reply.header('content-type', registry.contentType).header('cache-control', 'no-store').send(text);
    } catch (error) {
      services.sendException(reply, error);
      return reply;
    }
  });
}

/** Who read the page lately may read on while keys cannot be looked up: that the database is away is what it is to tell. */
const TRUSTED_MILLISECONDS = 15 * 60_000;
const MOST_TRUSTED = 16;

/** An operator's key, in `x-api-key` or, as Prometheus sends it, in `authorization: Bearer`; a read-only one suffices. */
function createGuard(services: MetricsServices) {
  const trusted = new Map<string, number>();
  const trust = (digest: string): void => {
    trusted.delete(digest);
    trusted.set(digest, Date.now() + TRUSTED_MILLISECONDS);
    const [oldest] = trusted.keys();
    if (trusted.size > MOST_TRUSTED && oldest !== undefined) trusted.delete(oldest);
  };
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    const key = request.headers['x-api-key'] ?? (scheme?.toLowerCase() === 'bearer' ? token : undefined);
    const digest = hash('sha256', String(key), 'base64url');
    answerInTime(Promise.resolve(services.keys.authenticate(key, request.ip)), undefined, DATABASE_MILLISECONDS).then(
      (who) => {
        const refused = refusalOf(who);
        if (refused !== undefined) {
          trusted.delete(digest);
          services.sendFailure(reply, refused);
        } else {
          trust(digest);
          done();
        }
      },
      (error: unknown) => {
        if ((trusted.get(digest) ?? 0) > Date.now()) done();
        else services.sendException(reply, error);
      },
    );
  };
}

function refusalOf(who: Authenticated): Failure | undefined {
  if (!who.ok) return who.failure;
  if (who.caller.role !== 'operator') return notAnOperator;
  // A key for some operations is one for nothing else.
  return who.caller.limits.operations === undefined ? undefined : otherOperations;
}

const failure = (code: Failure['code'], message: string): Failure => ({
  code,
  details: [{ field: '', code, message }],
});
const notAnOperator = failure('operator_key_required', 'The metrics are read with a key of an operator.');
const otherOperations = failure(
  'operation_not_allowed',
  'This API key may call some operations and nothing else; the metrics are none of them.',
);

/** A template of ours, never what was asked for. */
function routeOf(request: FastifyRequest): string {
  const { url, method } = request.routeOptions;
  return url === undefined ? 'none' : `${Array.isArray(method) ? request.method : method} ${url}`;
}

function isStream(request: FastifyRequest): boolean {
  const { url } = request.routeOptions;
  return url !== undefined && /\/(?:stream|event)$/.test(url);
}

/** What is read anew for each page. */
function createFigures(registry: Registry, services: MetricsServices): { read(): Promise<void> } {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `levee_${name}`, help, labelNames, registers: [registry] });
  const databaseUp = gauge(
    'database_up',
    'Whether the database answered for this page; without it the rest is as before.',
  );
  const tailConnected = gauge('change_log_connected', 'Whether this replica follows the change log.');
  const lag = gauge('change_log_lag_seconds', 'Age of the oldest entry that this replica has not handed out.');
  const routers = gauge('routers', 'Enrolled routers, by how they enforce.', 'enforcement');
  const silentRouters = gauge('routers_silent', 'Enrolled routers that have not reported for a minute.');
  const streams = gauge('streams', 'Connected to this replica.', 'of');
  const attacks = gauge('attacks_ongoing', 'Attacks that go on.', 'source', 'mitigation');
  const flowrules = gauge(
    'flowrules',
    'Flowrules, by what the BGP speaker has of them; unannounced: none is configured.',
    'state',
  );
  const speakerAway = gauge('bgp_speaker_away', '1 while the BGP speaker is away or does not have what it should.');
  const peersDown = gauge('bgp_peers_down', 'Sessions of the BGP speaker that are not established.');
  const detectors = createDetectorGauges(registry);
  const exporters = createExporterGauges(registry);

  const showReplica = (): void => {
    tailConnected.set(services.tail.connected ? 1 : 0);
    const { routers: known } = services.registry;
    for (const mode of ['kernel', 'dry', 'unknown'] as const) {
      routers.set({ enforcement: mode }, known.filter(({ enforcement }) => (enforcement ?? 'unknown') === mode).length);
    }
    const since = Date.now() - SILENT_MILLISECONDS;
    silentRouters.set(known.filter(({ lastSeenMilliseconds }) => (lastSeenMilliseconds ?? 0) < since).length);
    for (const [of, count] of Object.entries(services.streams())) streams.set({ of }, count);
  };
  const showDatabase = (figures: MetricFigures): void => {
    lag.set(figures.changeLagSeconds);
    attacks.reset();
    for (const own of [true, false]) {
      for (const mitigation of ['observe', 'edge', 'flowspec', 'rtbh']) {
        const found = figures.attacks.find((each) => each.own === own && each.mitigation === mitigation);
        attacks.set({ source: own ? 'levee' : 'other', mitigation }, found?.count ?? 0);
      }
    }
    for (const [state, count] of Object.entries(figures.flowrules)) flowrules.set({ state }, count);
    speakerAway.set(figures.speaker?.away ? 1 : 0);
    peersDown.set(figures.speaker?.peersDown ?? 0);
    detectors.show(figures.detectors);
  };
  return {
    async read() {
      showReplica();
      try {
        const executor = executorOf(services.pool);
        const reading = Promise.all([
          readMetricFigures(services.pool, services.tail.cursor, services.hasSpeaker),
          listExporters(executor),
          readFigures(executor),
        ]);
        const [figures, configured, live] = await answerInTime(reading, undefined, DATABASE_MILLISECONDS);
        showDatabase(figures);
        exporters.show(configured, live);
        databaseUp.set(1);
      } catch {
        // Whoever watches is told just that; what was known before stays.
        databaseUp.set(0);
      }
    },
  };
}

function createDetectorGauges(registry: Registry) {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `levee_detector_${name}`, help, labelNames: ['detector'], registers: [registry] });
  const lastSeen = gauge('last_seen_timestamp_seconds', 'When it last reported.');
  const kernelDrops = new Counter({
    name: 'levee_detector_kernel_drops_total',
    help: "Datagrams that its machine dropped for want of room, since the detector's start.",
    labelNames: ['detector'],
    registers: [registry],
  });
  const tracked = gauge('tracked_destinations', 'Destinations that it keeps figures of.');
  const memory = gauge('memory_bytes', 'Resident memory of its process.');
  const buffer = gauge('receive_buffer_bytes', 'The smallest receive buffer of its sockets.');
  const wanted = gauge('receive_buffer_wanted_bytes', 'What it asked for.');
  const refused = gauge('refused_addresses', 'Addresses that it cannot take flow telemetry at.');
  const overflow = new Counter({
    name: 'levee_detector_overflow_total',
    help: 'What a bound of its collectors kept out, since their start: datagrams of ever more unknown sources, samples in no sum, flows that count at once, records in no profile.',
    labelNames: ['detector', 'of'],
    registers: [registry],
  });
  const connected = gauge(
    'bus_connected',
    '1: it hears collectors over NATS; 0: it does not. Absent where it has its own alone.',
  );
  const collectors = gauge('bus_collectors', 'Collectors that it hears over NATS.');
  const partitions = gauge('bus_partitions', 'Of 64 parts of all destinations, those that it judges.');
  const busDropped = new Counter({
    name: 'levee_detector_bus_dropped_total',
    help: 'Messages that it or its collectors could not send over NATS, and such as were malformed, since their start.',
    labelNames: ['detector', 'reason'],
    registers: [registry],
  });
  const ofBus = [connected, collectors, partitions, busDropped];
  return {
    show(all: MetricFigures['detectors']): void {
      for (const each of [lastSeen, kernelDrops, tracked, memory, buffer, wanted, refused, overflow]) each.reset();
      for (const each of ofBus) each.reset();
      for (const { name: detector, last_seen_ms, status } of all) {
        if (last_seen_ms !== null) lastSeen.set({ detector }, last_seen_ms / 1000);
        if (status === null) continue;
        kernelDrops.inc({ detector }, status.kernel_drops);
        tracked.set({ detector }, status.tracked_destinations);
        memory.set({ detector }, status.memory_bytes);
        refused.set({ detector }, status.refused?.length ?? 0);
        for (const [of, count] of Object.entries(status.overflow ?? {})) overflow.inc({ detector, of }, count);
        const { bus } = status;
        if (bus !== undefined) {
          connected.set({ detector }, bus.connected ? 1 : 0);
          collectors.set({ detector }, bus.collectors);
          partitions.set({ detector }, bus.partitions);
          busDropped.inc({ detector, reason: 'unsent' }, bus.unsent);
          busDropped.inc({ detector, reason: 'malformed' }, bus.malformed);
        }
        const [first, ...others] = status.receive_buffers;
        if (first === undefined) continue;
        buffer.set({ detector }, Math.min(first.bytes, ...others.map(({ bytes }) => bytes)));
        wanted.set({ detector }, first.wanted);
      }
    },
  };
}

/** Of those that are configured by name; `local`: programs beside a detector; the others together. */
function createExporterGauges(registry: Registry) {
  const gauge = (name: string, help: string, ...more: string[]) =>
    new Gauge({ name: `levee_exporter_${name}`, help, labelNames: ['exporter', ...more], registers: [registry] });
  const counter = (name: string, help: string, ...more: string[]) =>
    new Counter({ name: `levee_exporter_${name}`, help, labelNames: ['exporter', ...more], registers: [registry] });
  const seen = gauge('last_seen_timestamp_seconds', 'When a datagram of it last arrived; 0: never.');
  const datagrams = counter('datagrams_total', "Since its detector's start.");
  const records = counter('records_total', "Since its detector's start.");
  const lost = counter('lost_datagrams_total', 'Missing in its sequence numbers.');
  const dropped = counter('dropped_total', 'Datagrams and records that were thrown away, by reason.', 'reason');
  const templates = gauge('templates', 'Known at present.');
  const sampling = gauge('sampling_rate', 'One packet of so many, as last told or set.');
  const collectors = gauge(
    'collectors',
    'That hear it at present: of what it sends to two, everything is counted twice.',
  );
  const unknown = new Gauge({
    name: 'levee_unknown_exporters',
    help: 'Addresses that send without being configured.',
    registers: [registry],
  });
  const unknownDatagrams = new Counter({
    name: 'levee_unknown_exporter_datagrams_total',
    help: 'What they sent.',
    registers: [registry],
  });
  const all = [seen, datagrams, records, lost, dropped, templates, sampling, collectors];
  const show = (exporter: string, live: LiveFigures | undefined): void => {
    const label: LabelValues<string> = { exporter };
    seen.set(label, (live?.last_seen_ms ?? 0) / 1000);
    if (live === undefined) return;
    datagrams.inc(label, live.datagrams);
    records.inc(label, live.records);
    lost.inc(label, live.lost);
    templates.set(label, live.templates);
    collectors.set(label, live.hearing.length);
    if (live.sampling_rate !== undefined) sampling.set(label, live.sampling_rate);
    for (const [reason, count] of Object.entries(live.dropped)) dropped.inc({ exporter, reason }, count);
  };
  return {
    show(configured: Awaited<ReturnType<typeof listExporters>>, figures: ReadonlyMap<string, LiveFigures>): void {
      for (const each of all) each.reset();
      const others = new Map(figures);
      for (const { name, source } of configured) {
        show(name, figures.get(source));
        others.delete(source);
      }
      const foreign = [...others.values()].filter(({ source }) => !source.startsWith('127.') && source !== '::1');
      unknown.set(foreign.length);
      unknownDatagrams.reset();
      unknownDatagrams.inc(foreign.reduce((sum, each) => sum + each.datagrams, 0));
      for (const live of others.values()) if (!foreign.includes(live)) show('local', live);
    },
  };
}
