/**
 * Owns the reading of what FastNetMon tells of an attack: its JSON documents for one host, and the text that it passes to
 * notify scripts. Never trusts a word of it: a text may hold whatever packets held. Formats: FastNetMon's "JSON formats"
 * page, and the sources of its community edition for the text.
 */
import type { FastnetmonReport } from '@levee/contract/schemas/attack-report.ts';
import type { Address } from '../net/prefix.ts';
import { readAddress } from '../net/read.ts';
import { type Problem, problem, quote } from '../problem.ts';
import { parseTextDetails } from './fastnetmon-text.ts';
import { readPacketDump, type Tally, tallyPackets } from './packet-tally.ts';

export interface FastnetmonAttack extends Partial<Tally> {
  readonly target: Address;
  readonly phase: 'started' | 'changed' | 'ended';
  /** Undefined: the text format, which has none. */
  readonly attackId: string | undefined;
  readonly vectors: readonly string[];
  readonly packetsPerSecond: number | undefined;
  readonly bitsPerSecond: number | undefined;
  readonly threshold: { readonly metric: string; readonly policy?: string } | undefined;
}

export type ParsedFastnetmon =
  | { readonly ok: true; readonly attack: FastnetmonAttack }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const phases: ReadonlyMap<string, FastnetmonAttack['phase']> = new Map([
  ['ban', 'started'],
  ['partial_block', 'started'],
  ['unban', 'ended'],
]);

/** `report` has the shape that contract gives it; what else it holds is looked at with care. */
export function parseFastnetmon(report: FastnetmonReport): ParsedFastnetmon {
  const problems: Problem[] = [];
  const target = readAddress(report.ip, ['ip'], problems);
  if (report.alert_scope !== undefined && report.alert_scope !== 'host') {
    const sentence = `must be host, received ${quote(report.alert_scope)}: alerts of whole host groups name no destination`;
    problems.push(problem(['alert_scope'], 'not_allowed', sentence));
  }
  const details = report.attack_details;
  const text = report.details === undefined ? undefined : parseTextDetails(report.details);
  const [path, direction] =
    details === undefined
      ? [['direction'], report.direction ?? text?.direction]
      : [['attack_details', 'attack_direction'], directionOf(details)];
  if (direction === 'outgoing') {
    const sentence = 'is outgoing: that traffic leaves the address; only attacks on a protected address are recorded';
    problems.push(problem(path, 'outgoing', sentence));
  }
  if (target === undefined || problems.length > 0) return { ok: false, problems };
  const dump = (report as { packet_dump_detailed?: unknown }).packet_dump_detailed;
  const packets = text?.packets ?? readPacketDump(dump);
  const bytes = details?.total_incoming_traffic;
  return {
    ok: true,
    attack: {
      target,
      phase: phases.get(report.action) ?? 'changed',
      attackId: idOf(details?.attack_uuid),
      vectors: vectorsOf(details?.attack_type ?? text?.type, details?.attack_protocol ?? text?.protocol),
      packetsPerSecond: highest([
        details?.peak_attack_power,
        details?.total_incoming_pps,
        text?.peakPacketsPerSecond,
        report.pps,
      ]),
      bitsPerSecond: bytes === undefined ? text?.bitsPerSecond : Math.round(bytes) * 8,
      threshold: thresholdOf(details?.attack_detection_threshold, details?.host_group),
      ...tallyPackets(packets, target),
    },
  };
}

/** The newer member, where it says something. */
function directionOf(details: NonNullable<FastnetmonReport['attack_details']>): string | undefined {
  const newer = details.attack_detection_threshold_direction;
  return newer === 'incoming' || newer === 'outgoing' ? newer : details.attack_direction;
}

function idOf(uuid: string | undefined): string | undefined {
  return uuid !== undefined && /^[\x21-\x7e]{1,128}$/.test(uuid) ? uuid : undefined;
}

/** What kind it is, else by which protocol; nothing where FastNetMon does not know either. */
function vectorsOf(type: string | undefined, protocol: string | undefined): readonly string[] {
  for (const word of [type, protocol]) {
    const vector = word
      ?.toLowerCase()
      .replaceAll(/[^a-z0-9._-]+/g, '-')
      .replace(/^[^a-z0-9]+/, '')
      .slice(0, 64);
    if (vector !== undefined && vector !== '' && vector !== 'unknown' && vector !== 'other') return [vector];
  }
  return [];
}

function thresholdOf(metric: string | undefined, group: string | undefined): FastnetmonAttack['threshold'] {
  const plain = (text: string | undefined) =>
    text !== undefined && text !== '' && text !== 'unknown' && text.length <= 64 && !/\p{Cc}/u.test(text);
  if (metric === undefined || !plain(metric)) return undefined;
  return { metric, ...(group !== undefined && plain(group) && { policy: group }) };
}

function highest(rates: readonly (number | undefined)[]): number | undefined {
  const known = rates.filter((rate) => rate !== undefined).map(Math.round);
  return known.length === 0 ? undefined : Math.max(...known);
}
