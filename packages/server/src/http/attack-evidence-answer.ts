/** Renders what is kept of an attack beside the attack: how it went, what its packets look like, what came of it. */
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import { shapesOf } from '@levee/core/attack/packet-shapes.ts';
import { protocolText } from '@levee/core/firewall/protocol-traits.ts';
import { readSample, summarise } from '@levee/core/firewall/sampled-packet.ts';
import { tcpFlagBits, tcpFlagNames } from '@levee/core/firewall/wire.ts';
import type { EvidenceColumns, EvidenceRow, PacketRow, RuleMeasureRow } from '../commands/attack-evidence-row.ts';
import { flowruleStateOf } from './flowrule-answer.ts';
import { type AppliedStates, timeText } from './object-answer.ts';

const MOST_TOP = 20;

export interface EvidenceOf extends EvidenceColumns {
  readonly started_ms: number;
  readonly ended_ms: number | null;
}

export interface MeasureStates {
  /** Of rules, on the routers. */
  readonly applied: AppliedStates;
  /** Whether a BGP speaker is configured. */
  readonly hasSpeaker: boolean;
}

export function evidenceJson(attack: EvidenceOf, states: MeasureStates): Readonly<Record<string, unknown>> {
  const { evidence, exporters } = attack;
  const nameOf = (address: string) => exporters[address] ?? address;
  const profile = evidence === null ? [] : profileOf(evidence, attack.packet_samples);
  return {
    ...(evidence !== null && {
      packets: evidence.packets,
      bytes: evidence.bytes,
      sampled: evidence.sampled,
      average: averageOf(attack, evidence),
      ...topsOf(profile),
      entries: evidence.entries.map((entry) => ({ ...entry, exporter: nameOf(entry.exporter) })),
      profile: profile.map(profileJson),
    }),
    timeline: attack.timeline.map(({ at_ms, ...rest }) => ({
      at: timeText(at_ms),
      ...rest,
      vectors: whole(rest.vectors),
    })),
    packet_samples: attack.packet_samples.map((packet) => packetJson(packet, nameOf)),
    measures: {
      flowrules: attack.flowrule_measures.map((row) => measureJson(row, flowruleStateOf(row, states.hasSpeaker))),
      firewall_rules: attack.rule_measures.map((row) => measureJson(row, ruleState(row, states.applied))),
      notes: attack.measure_notes,
    },
  };
}

/** Where only a part of the whole is one's own, one's own packets say what it looks like. */
function profileOf({ profile, narrowed }: EvidenceRow, packets: readonly PacketRow[]): readonly VectorProfile[] {
  if (!narrowed) return profile;
  const shapeOf = shapesOf(packets.map(({ header, length }) => ({ header: Buffer.from(header, 'base64'), length })));
  return profile.map((each) => ({ ...each, ...shapeOf(each.vector) }));
}

function measureJson(
  { uuid, purpose, deleted }: Pick<RuleMeasureRow, 'uuid' | 'purpose' | 'deleted'>,
  { state, reason }: { readonly state: string; readonly reason?: string | undefined },
) {
  return {
    uuid,
    ...(purpose !== null && { purpose }),
    state: deleted ? 'marked_for_deletion' : state,
    ...(!deleted && reason !== undefined && { state_reason: reason }),
  };
}

function ruleState({ uuid, change_xid, change_position, updated_ms, deleted }: RuleMeasureRow, applied: AppliedStates) {
  const change = { xid: Number(change_xid), position: change_position };
  return applied.stateOf({ uuid, change, changedMilliseconds: updated_ms, deleted });
}

/** From its start to its end, or to the last report. */
function averageOf({ started_ms, ended_ms }: EvidenceOf, { measured_ms, packets, bytes }: EvidenceRow) {
  const seconds = Math.max(1, ((ended_ms ?? measured_ms) - started_ms) / 1000);
  return { pps: Math.round(packets / seconds), bps: Math.round((bytes * 8) / seconds) };
}

function whole(vectors: Readonly<Record<string, { readonly pps: number; readonly bps: number }>>) {
  return Object.fromEntries(
    Object.entries(vectors).map(([name, { pps, bps }]) => [name, { pps: Math.round(pps), bps: Math.round(bps) }]),
  );
}

function topsOf(profile: readonly VectorProfile[]): Readonly<Record<string, unknown>> {
  const sources = weighted(profile, ({ sources }) => sources).map(([source, share]) => ({ source, share }));
  const ports = (of: (each: VectorProfile) => readonly Share<number>[]) =>
    weighted(profile, of).map(([port, share]) => ({ port, share }));
  const src = ports(({ source_ports }) => source_ports);
  const dst = ports(({ destination_ports }) => destination_ports);
  return {
    ...(sources.length > 0 && { top_sources: sources }),
    ...((src.length > 0 || dst.length > 0) && {
      top_ports: { ...(src.length > 0 && { src }), ...(dst.length > 0 && { dst }) },
    }),
  };
}

/** Of all the packets: each kind's shares by how much of the attack it is. The most first; `total` is of all of them. */
function weighted<T>(
  profile: readonly VectorProfile[],
  sharesOf: (each: VectorProfile) => readonly Share<T>[],
): readonly (readonly [T, number])[] {
  const kinds = profile.filter(({ vector }) => vector !== 'total');
  const parts = kinds.length > 0 ? kinds : profile;
  const sum = parts.reduce((pps, each) => pps + each.pps, 0);
  const shares = new Map<T, number>();
  for (const part of parts) {
    const weight = sum > 0 ? part.pps / sum : 1 / parts.length;
    for (const { value, share } of sharesOf(part)) shares.set(value, (shares.get(value) ?? 0) + share * weight);
  }
  return [...shares]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_TOP)
    .map(([value, share]) => [value, Math.min(1, Number(share.toFixed(4)))]);
}

function profileJson(profile: VectorProfile): Readonly<Record<string, unknown>> {
  const { vector, pps, bps, peak_pps, peak_bps, samples, length, later_fragments, distinct_sources } = profile;
  const ports = (shares: readonly Share<number>[]) => shares.map(({ value, share }) => ({ port: value, share }));
  return {
    vector,
    pps: Math.round(pps),
    bps: Math.round(bps),
    peak_pps: Math.round(peak_pps),
    peak_bps: Math.round(peak_bps),
    samples,
    protocols: profile.protocols.map(({ value, share }) => ({ protocol: protocolText(value), share })),
    source_ports: ports(profile.source_ports),
    destination_ports: ports(profile.destination_ports),
    icmp: profile.icmp.map(({ value, share }) => ({ type: value >>> 8, code: value & 255, share })),
    tcpflags: profile.tcp_flags.map(({ value, share }) => ({
      flags: tcpFlagNames.filter((name) => (value & tcpFlagBits[name]) !== 0),
      share,
    })),
    length,
    later_fragments,
    sources: profile.sources.map(({ value, share }) => ({ source: value, share })),
    distinct_sources,
    destinations: profile.destinations.map(({ value, share }) => ({ destination: value, share })),
  };
}

function packetJson(row: PacketRow, nameOf: (address: string) => string): Readonly<Record<string, unknown>> {
  const sample = readSample({ header: Buffer.from(row.header, 'base64'), length: row.length });
  return {
    at: timeText(row.at_ms),
    ...(sample && summarise(sample)),
    length: row.length,
    scale: row.scale,
    exporter: nameOf(row.exporter),
    ...(row.interface !== null && { interface: row.interface }),
  };
}
