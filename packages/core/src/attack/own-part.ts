/**
 * What of a detected attack is one holder's: of an attack on a subnet what goes to some of its addresses, and of one whose
 * destination changed hands what came while it was theirs. Lets nothing through that is another's, and estimates where the
 * detector tells of the whole alone (decision 0153). Pure.
 */
import type { DetectedAttack, PacketSample, Share, TimelineEntry, VectorProfile } from '@levee/contract/detector.ts';
import { readSample } from '../firewall/sampled-packet.ts';
import { formatAddress, parseAddress } from '../net/address.ts';
import { type Address, type Prefix, prefixContainsAddress } from '../net/prefix.ts';

/** What a profile says is of the packets of so long before (detection/profile.ts). */
export const PROFILE_MEMORY_MILLISECONDS = 30_000;

/** Milliseconds since 1970. */
export interface HeldTime {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export interface HeldSubnet {
  readonly prefix: Prefix;
  readonly sinceMs: number;
}

/** What is kept of it. `isNarrowed`: of its profile the rates alone are the holder's. */
export type OwnEvidence = Pick<DetectedAttack, 'measured' | 'profile' | 'timeline' | 'packet_samples' | 'entries'> & {
  readonly isNarrowed: boolean;
};

export interface OwnPart extends OwnEvidence {
  readonly vectors: readonly string[];
  /** Of the packets of the whole, and of its octets, as last measured. */
  readonly share: { readonly packets: number; readonly bytes: number };
}

/** Of an attack on what is all one holder's for the time. */
export function evidenceWithin(detected: DetectedAttack, held: HeldTime): OwnEvidence {
  const { measured, profile, entries, started_ms } = detected;
  const mine = { measured, ...within(detected, held) };
  if (held.sinceMs <= started_ms) return { ...mine, profile, entries, isNarrowed: false };
  // Peaks are of the whole attack; what is another's shape is forgotten by then.
  if (measured.at_ms >= held.sinceMs + PROFILE_MEMORY_MILLISECONDS) {
    return { ...mine, profile: profile.map(withoutPast), entries, isNarrowed: false };
  }
  return { ...mine, profile: profile.map(withoutPast), entries: [], isNarrowed: true };
}

/** Of an attack on a subnet. Undefined: none of it goes there. */
export function partOf(detected: DetectedAttack, subnets: readonly HeldSubnet[]): OwnPart | undefined {
  const { measured, started_ms } = detected;
  const told = subnets.filter(
    ({ sinceMs }) => sinceMs <= started_ms || sinceMs + PROFILE_MEMORY_MILLISECONDS <= measured.at_ms,
  );
  const isTold = (address: Address) => told.some(({ prefix }) => prefixContainsAddress(prefix, address));
  const packets = detected.packet_samples.filter((sample) => {
    const destination = destinationOf(sample);
    return (
      destination !== undefined &&
      subnets.some(({ prefix, sinceMs }) => sample.at_ms >= sinceMs && prefixContainsAddress(prefix, destination))
    );
  });
  const scaleOf = (samples: readonly PacketSample[]) => samples.reduce((sum, { scale }) => sum + scale, 0);
  const ofAll = scaleOf(detected.packet_samples);
  const bySamples = ofAll > 0 ? scaleOf(packets) / ofAll : 0;
  const listed = detected.profile.map((each) => each.destinations.filter(({ value }) => isIn(value, isTold)));
  const isListed = listed.some((own) => own.length > 0);
  // Beyond the destinations that are listed, the packets tell.
  const shares = listed.map((own) => (isListed ? Math.min(1, sumOf(own)) : bySamples));
  const profile = detected.profile
    .map((each, index) => ratesOf(each, shares[index] ?? 0, listed[index] ?? []))
    .filter((_, index) => (shares[index] ?? 0) > 0);
  if (profile.length === 0 && packets.length === 0) return undefined;
  const share = {
    packets: weighted(detected.profile, shares, ({ pps }) => pps),
    bytes: weighted(detected.profile, shares, ({ bps }) => bps),
  };
  const shareOf = new Map(detected.profile.map(({ vector }, index) => [vector, shares[index] ?? 0]));
  const since = Math.max(started_ms, Math.min(...(told.length > 0 ? told : subnets).map(({ sinceMs }) => sinceMs)));
  const { timeline } = within(detected, { sinceMs: since, untilMs: Number.POSITIVE_INFINITY });
  return {
    vectors: profile.map(({ vector }) => vector).filter((vector) => detected.vectors.includes(vector)),
    share,
    measured: { at_ms: measured.at_ms, pps: measured.pps * share.packets, bps: measured.bps * share.bytes },
    profile,
    timeline: timeline.map((entry) => scaled(entry, share, shareOf)),
    packet_samples: packets,
    entries: [],
    isNarrowed: true,
  };
}

/** Of what is kept already, the higher peaks stay. */
export function withPeaksOf(known: readonly VectorProfile[], profile: readonly VectorProfile[]): VectorProfile[] {
  return profile.map((each) => {
    const before = known.find(({ vector }) => vector === each.vector);
    if (before === undefined) return each;
    const { peak_pps, peak_bps } = before;
    return { ...each, peak_pps: Math.max(peak_pps, each.peak_pps), peak_bps: Math.max(peak_bps, each.peak_bps) };
  });
}

/** Canonical. */
export function destinationsOf({ profile, packet_samples }: DetectedAttack): string[] {
  const seen = packet_samples.flatMap((sample) => {
    const destination = destinationOf(sample);
    return destination === undefined ? [] : [formatAddress(destination)];
  });
  return [...new Set([...profile.flatMap(({ destinations }) => destinations.map(({ value }) => value)), ...seen])];
}

function within({ timeline, packet_samples }: DetectedAttack, { sinceMs, untilMs }: HeldTime) {
  return {
    timeline: timeline.filter(({ at_ms, seconds }) => at_ms >= sinceMs && at_ms + seconds * 1000 <= untilMs),
    packet_samples: packet_samples.filter(({ at_ms }) => at_ms >= sinceMs && at_ms < untilMs),
  };
}

function withoutPast(profile: VectorProfile): VectorProfile {
  return { ...profile, peak_pps: profile.pps, peak_bps: profile.bps };
}

function ratesOf({ vector, pps, bps }: VectorProfile, share: number, destinations: readonly Share<string>[]) {
  const sum = sumOf(destinations);
  const own = { pps: pps * share, bps: bps * share };
  return {
    vector,
    ...own,
    peak_pps: own.pps,
    peak_bps: own.bps,
    samples: 0,
    protocols: [],
    source_ports: [],
    destination_ports: [],
    icmp: [],
    tcp_flags: [],
    length: { min: 0, p5: 0, max: 0 },
    later_fragments: 0,
    sources: [],
    distinct_sources: 0,
    destinations: destinations.map((each) => ({ value: each.value, share: Math.min(1, each.share / sum) })),
  } satisfies VectorProfile;
}

function scaled(
  { at_ms, seconds, pps, bps, vectors }: TimelineEntry,
  share: OwnPart['share'],
  shareOf: ReadonlyMap<string, number>,
): TimelineEntry {
  const own = Object.entries(vectors).flatMap(([vector, rates]) => {
    const part = shareOf.get(vector) ?? 0;
    return part > 0 ? [[vector, { pps: rates.pps * part, bps: rates.bps * part }] as const] : [];
  });
  return { at_ms, seconds, pps: pps * share.packets, bps: bps * share.bytes, vectors: Object.fromEntries(own) };
}

/** `total` is all kinds together, and counts where it is the only one. */
function weighted(
  profile: readonly VectorProfile[],
  shares: readonly number[],
  of: (each: VectorProfile) => number,
): number {
  const isOnly = profile.every(({ vector }) => vector === 'total');
  let own = 0;
  let sum = 0;
  for (const [index, each] of profile.entries()) {
    if (each.vector === 'total' && !isOnly) continue;
    own += of(each) * (shares[index] ?? 0);
    sum += of(each);
  }
  return sum > 0 ? own / sum : 0;
}

function destinationOf({ header, length }: PacketSample): Address | undefined {
  const sample = readSample({ header: octetsOf(header), length });
  return sample && { family: sample.packet.family, value: sample.packet.destination };
}

function octetsOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function isIn(text: string, isOwn: (address: Address) => boolean): boolean {
  const parsed = parseAddress(text);
  return parsed.ok && isOwn(parsed.address);
}

function sumOf(shares: readonly Share<string>[]): number {
  return shares.reduce((sum, { share }) => sum + share, 0);
}
