/**
 * What the body of a report says of an attack, beyond its schema: which addresses, when, and whether that can be. Owns
 * how far another system's clock may be ahead; decides nothing about what is stored.
 */
import type { FastnetmonReport } from '@levee/contract/schemas/attack-report.ts';
import { type FastnetmonAttack, parseFastnetmon } from '@levee/core/attack/fastnetmon.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { readAddress, readPrefix } from '@levee/core/net/read.ts';
import type { Problem } from '@levee/core/problem.ts';
import { type AttackDetails, detailNames, type Mitigation } from '../commands/attack-row.ts';
import type { AttackReport } from '../commands/record-attack.ts';
import { type Judged, judgedBy, membersOf } from './call.ts';

/** Further ahead a time is a mistake; up to there it counts as now. */
const MOST_AHEAD_MILLISECONDS = 5 * 60_000;

export function judgeAttackReport(body: unknown, nowMilliseconds: number): Judged {
  const problems: Problem[] = [];
  const told = membersOf(body);
  const now = new Date(nowMilliseconds);
  const dst = told.dst === undefined ? undefined : readPrefix(told.dst, ['dst'], problems);
  if (told.source === 'levee') {
    const message = 'source: levee is the detector of this installation; name the system that tells';
    problems.push({ field: '/source', code: 'reserved', message });
  }
  const time = (name: 'started_at' | 'ended_at' | 'at') => readTime(told[name], name, now, problems);
  const [startedAt, endedAt, measuredAt] = [time('started_at'), time('ended_at'), time('at')];
  const phase = phaseOf(told, problems);
  if (phase !== 'ended' && told.ended_at !== undefined && told.state !== undefined) {
    const message = `ended_at: is for a report with the state ended, received the state ${String(told.state).slice(0, 20)}`;
    problems.push({ field: '/ended_at', code: 'not_ended', message });
  }
  if (startedAt !== undefined && endedAt !== undefined && endedAt < startedAt) {
    const message = `ended_at: ${endedAt.toISOString()} lies before started_at, ${startedAt.toISOString()}`;
    problems.push({ field: '/ended_at', code: 'start_after_end', message });
  }
  const details = readDetails(told, now, problems);
  if (dst === undefined || phase === undefined || problems.length > 0) return judgedBy(problems);
  return judgedBy(problems, {
    source: told.source as string,
    externalId: told.external_id as string | undefined,
    dst: formatPrefix(dst),
    phase,
    startedAt,
    endedAt,
    measuredAt,
    now,
    vectors: told.vectors as readonly string[] | undefined,
    pps: told.pps as number | undefined,
    bps: told.bps as number | undefined,
    mitigation: told.mitigation as Mitigation | undefined,
    details,
  } satisfies AttackReport);
}

const phases = ['started', 'changed', 'ended'] as const;

function phaseOf(told: Readonly<Record<string, unknown>>, problems: Problem[]): AttackReport['phase'] | undefined {
  // A word that is none of them is the schema's to tell.
  if (told.state !== undefined) return phases.find((phase) => phase === told.state);
  if (told.ended_at !== undefined) return 'ended';
  if (told.started_at !== undefined) return 'started';
  const message = 'state: is required where neither started_at nor ended_at is given: one of started, changed, ended';
  problems.push({ field: '/state', code: 'required', message });
  return undefined;
}

/** Not after `now`. Undefined: absent, or a problem was added, here or by the schema. */
function readTime(value: unknown, name: string, now: Date, problems: Problem[]): Date | undefined {
  if (typeof value !== 'string' || value.length > 40) return undefined;
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) return undefined;
  if (time.getTime() > now.getTime() + MOST_AHEAD_MILLISECONDS) {
    const message = `${name}: ${time.toISOString()} lies in the future, more than 5 minutes after ${now.toISOString()}, the time here`;
    problems.push({ field: `/${name.replaceAll('.', '/')}`, code: 'in_the_future', message });
    return undefined;
  }
  if (time.getTime() < 0) {
    const message = `${name}: ${time.toISOString()} lies before 1970`;
    problems.push({ field: `/${name.replaceAll('.', '/')}`, code: 'out_of_bounds', message });
    return undefined;
  }
  return time > now ? now : time;
}

function readDetails(told: Readonly<Record<string, unknown>>, now: Date, problems: Problem[]): AttackDetails {
  const details: Record<string, unknown> = {};
  for (const name of detailNames) if (told[name] !== undefined) details[name] = told[name];
  if (Array.isArray(told.top_sources)) {
    details.top_sources = told.top_sources.slice(0, 100).map((entry: unknown, index) => {
      const { source } = membersOf(entry);
      if (typeof source !== 'string') return entry;
      const prefix = readPrefix(source, ['top_sources', index, 'source'], problems);
      return prefix === undefined ? entry : { ...membersOf(entry), source: formatPrefix(prefix) };
    });
  }
  if (Array.isArray(told.actions)) {
    details.actions = told.actions.slice(0, 100).map((entry: unknown, index) => {
      const at = readTime(membersOf(entry).at, `actions.${index}.at`, now, problems);
      return at === undefined ? entry : { ...membersOf(entry), at: at.toISOString() };
    });
  }
  return details as AttackDetails;
}

/** `found`: what the schema found; a body that is not sound is looked at as far as it can be. */
export function judgeFastnetmonReport(body: unknown, found: readonly Problem[], nowMilliseconds: number): Judged {
  if (found.length > 0) {
    const problems: Problem[] = [];
    const { ip } = membersOf(body);
    if (typeof ip === 'string') readAddress(ip, ['ip'], problems);
    return judgedBy(problems);
  }
  const parsed = parseFastnetmon(body as FastnetmonReport);
  return parsed.ok ? { ok: true, value: reportOf(parsed.attack, new Date(nowMilliseconds)) } : parsed;
}

/** It tells no times: what it tells happened just now. */
function reportOf(attack: FastnetmonAttack, now: Date): AttackReport {
  const { topSources, topSourcePorts = [], topDestinationPorts = [], threshold } = attack;
  const ports = {
    ...(topSourcePorts.length > 0 && { src: topSourcePorts }),
    ...(topDestinationPorts.length > 0 && { dst: topDestinationPorts }),
  };
  return {
    source: 'fastnetmon',
    externalId: attack.attackId,
    dst: formatAddress(attack.target),
    phase: attack.phase,
    now,
    vectors: attack.vectors,
    pps: attack.packetsPerSecond,
    bps: attack.bitsPerSecond,
    details: {
      ...(threshold !== undefined && { threshold }),
      ...(topSources !== undefined && { top_sources: topSources }),
      ...(Object.keys(ports).length > 0 && { top_ports: ports }),
    },
  };
}
