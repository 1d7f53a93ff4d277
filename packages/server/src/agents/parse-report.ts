/**
 * From what a router sent to a report that can be stored. A router is authenticated, not trusted: everything is
 * checked and bounded here.
 */
import type { RoundTrips } from '@levee/core/tunnel/probe-window.ts';
import type { Cursor } from '../store/cursor.ts';
import type { HitDelta } from '../store/report-hits.ts';
import type { ReportedProbe } from '../store/report-probes.ts';
import type { StoredReport } from '../store/reports.ts';
import type { WireCursors } from './wire-cursor.ts';

export type ParsedReport =
  | { readonly ok: true; readonly report: Omit<StoredReport, 'routerUuid' | 'keyHash'> }
  | { readonly ok: false; readonly field: string; readonly message: string };

const LISTED_MAXIMUM = 500_000;
const REASON_MAXIMUM = 2_000;
const STATUS_MAXIMUM_BYTES = 64 * 1024;
const CAPABILITY = /^(?:filter:[1-9]\d{0,4}|tunnel:[A-Za-z]{1,16})$/;
const CAPABILITIES_MAXIMUM = 256;
/** Of one tunnel in one report. */
const PROBES_MAXIMUM = 1_000_000;
/** Milliseconds; an answer that takes longer is none. */
const ROUND_TRIP_MAXIMUM = 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

class Refused extends Error {
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** The first problem found: the sender is a program of ours, nobody fills in a form. `now`: milliseconds since 1970. */
export function parseReport(body: unknown, cursors: WireCursors, now = Date.now()): ParsedReport {
  try {
    const report = objectOf(body, '');
    const enforcement = objectOf(report.enforcement, '/enforcement');
    if (enforcement.mode !== 'kernel' && enforcement.mode !== 'dry') {
      throw new Refused('/enforcement/mode', 'must be kernel or dry');
    }
    const cursor = cursorOf(report.cursor, '/cursor', cursors);
    const resumes = report.cursor === undefined ? cursorOf(report.resumes, '/resumes', cursors) : undefined;
    if (report.waits_for !== undefined && report.waits_for !== 'tunnels') {
      throw new Refused('/waits_for', 'must be tunnels');
    }
    return {
      ok: true,
      report: {
        cursor: cursor === 'foreign' ? undefined : cursor,
        resumes: resumes === 'foreign' ? undefined : resumes,
        foreign: cursor === 'foreign' || resumes === 'foreign',
        waitsForTunnels: report.waits_for === 'tunnels',
        enforcement: enforcement.mode,
        enforcementReason:
          enforcement.reason === undefined ? undefined : text(enforcement.reason, '/enforcement/reason'),
        tableLeft: enforcement.mode === 'dry' && flag(enforcement.table_left, '/enforcement/table_left'),
        capabilities: report.capabilities === undefined ? [] : capabilitiesOf(report.capabilities),
        failures: list(report.failures, '/failures').map((each, index) => {
          const failure = objectOf(each, `/failures/${index}`);
          return {
            uuid: uuid(failure.uuid, `/failures/${index}/uuid`),
            reason: text(failure.reason, `/failures/${index}/reason`),
          };
        }),
        counters: report.counters === undefined ? undefined : countersOf(report.counters, now),
        probes: report.probes === undefined ? [] : probesOf(report.probes, now),
        status: report.status === undefined ? undefined : statusOf(report.status),
      },
    };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ok: false, field: error.field, message: `${error.field.slice(1) || 'the body'}: ${error.message}` };
  }
}

function capabilitiesOf(value: unknown): string[] {
  const names = list(value, '/capabilities').map((each, index) => {
    if (typeof each !== 'string' || !CAPABILITY.test(each)) {
      throw new Refused(`/capabilities/${index}`, 'must be filter:<id> or tunnel:<type>');
    }
    return each;
  });
  return [...new Set(names)].slice(0, CAPABILITIES_MAXIMUM);
}

function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refused(field, 'must be an object');
  return value as Record<string, unknown>;
}

function list(value: unknown, field: string): unknown[] {
  if (!Array.isArray(value)) throw new Refused(field, 'must be an array');
  if (value.length > LISTED_MAXIMUM) throw new Refused(field, `must have at most ${LISTED_MAXIMUM} entries`);
  return value;
}

/** PostgreSQL's text holds no NUL; what the kernel says is cut, not refused. */
function text(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new Refused(field, 'must be a string');
  return value.replaceAll('\0', '').slice(0, REASON_MAXIMUM);
}

function uuid(value: unknown, field: string): string {
  if (typeof value !== 'string' || !UUID.test(value)) throw new Refused(field, 'must be a uuid in lower case');
  return value;
}

function flag(value: unknown, field: string): boolean {
  if (value !== undefined && typeof value !== 'boolean') throw new Refused(field, 'must be true or false');
  return value === true;
}

function count(value: unknown, field: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Refused(field, 'must be a whole number from 0');
  return value as number;
}

/** `foreign`: a router reports before its snapshot has replaced what another database told it. */
function cursorOf(value: unknown, field: string, cursors: WireCursors): Cursor | 'foreign' | undefined {
  if (value === undefined) return undefined;
  const cursor = typeof value === 'string' ? cursors.read(value) : undefined;
  if (cursor === undefined) throw new Refused(field, 'must be a cursor that the stream gave');
  return cursor;
}

function countersOf(value: unknown, now: number): NonNullable<StoredReport['counters']> {
  const counters = objectOf(value, '/counters');
  return {
    run: uuid(counters.run, '/counters/run'),
    number: count(counters.number, '/counters/number'),
    hits: list(counters.hits, '/counters/hits').map((each, index) => hitOf(each, `/counters/hits/${index}`, now)),
  };
}

function hitOf(value: unknown, field: string, now: number): HitDelta {
  const hit = objectOf(value, field);
  const sharedBy = hit.shared_by === undefined ? undefined : count(hit.shared_by, `${field}/shared_by`);
  if (sharedBy !== undefined && (sharedBy < 1 || sharedBy > 2 ** 31 - 1)) {
    throw new Refused(`${field}/shared_by`, 'must be 1 to 2147483647');
  }
  return {
    uuid: uuid(hit.uuid, `${field}/uuid`),
    packets: count(hit.packets, `${field}/packets`),
    bytes: count(hit.bytes, `${field}/bytes`),
    lastHitAt: pastTime(hit.last_hit_at, `${field}/last_hit_at`, now),
    sharedBy,
  };
}

/** A clock that is wrong loses nothing else: a time to come is now, and none is before 1970. */
function pastTime(value: unknown, field: string, now: number): string {
  const time = Date.parse(text(value, field));
  if (Number.isNaN(time)) throw new Refused(field, 'must be a time of RFC 3339');
  return new Date(Math.max(0, Math.min(time, now))).toISOString();
}

function probesOf(value: unknown, now: number): ReportedProbe[] {
  return list(value, '/probes').map((each, index) => {
    const field = `/probes/${index}`;
    const probe = objectOf(each, field);
    const { last_answer_at: last } = probe;
    return {
      tunnelUuid: uuid(probe.uuid, `${field}/uuid`),
      sent: probeCount(probe.sent, `${field}/sent`),
      received: probeCount(probe.received, `${field}/received`),
      rtt: probe.rtt_ms === undefined ? undefined : roundTripsOf(probe.rtt_ms, `${field}/rtt_ms`),
      lastAnswerAt: last === undefined ? undefined : pastTime(last, `${field}/last_answer_at`, now),
    };
  });
}

function probeCount(value: unknown, field: string): number {
  const number = count(value, field);
  if (number > PROBES_MAXIMUM) throw new Refused(field, `must be at most ${PROBES_MAXIMUM}`);
  return number;
}

function roundTripsOf(value: unknown, field: string): RoundTrips {
  const rtt = objectOf(value, field);
  const [min, avg, max] = (['min', 'avg', 'max'] as const).map((name) => {
    const time = rtt[name];
    if (typeof time !== 'number' || !(time >= 0 && time <= ROUND_TRIP_MAXIMUM)) {
      throw new Refused(`${field}/${name}`, `must be milliseconds from 0 to ${ROUND_TRIP_MAXIMUM}`);
    }
    return time;
  }) as [number, number, number];
  return { min, avg, max };
}

function statusOf(value: unknown): Record<string, unknown> {
  const status = objectOf(value, '/status');
  if (JSON.stringify(status).length > STATUS_MAXIMUM_BYTES) {
    throw new Refused('/status', `must be at most ${STATUS_MAXIMUM_BYTES} bytes`);
  }
  return status;
}
