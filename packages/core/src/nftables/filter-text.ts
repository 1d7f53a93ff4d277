/**
 * Owns what one filter becomes: the line for chains of destinations, its own chains and its own sets. Every part comes
 * from numbers, names of names.ts, and the words of its kind; no text of a user enters.
 * Never looks at other filters: order and merging are the layout's.
 */
import type { Filter } from '../filter/filter.ts';
import { type KindEnforcement, type KindMeter, mostRemembered, settlingSeconds } from '../filter/filter-kind.ts';
import { mostApart, placeSeconds, sharedBound } from '../filter/meter-bounds.ts';
import { sourceBits } from '../filter/one-source.ts';
import { scopesOf } from '../filter/scope.ts';
import { formatAddress } from '../net/address.ts';
import { type Family, familyBits, type Prefix } from '../net/prefix.ts';
import { type AskedMeter, withMeterChains } from './meter-chains.ts';
import { filterChain, filterSet } from './names.ts';
import type { OwnChain } from './rule-text.ts';
import { scopeConditions } from './scope-text.ts';
import type { SetDefinition } from './transaction.ts';

/** A set that packets write to, bounded and timed, or the one that says that the filter settles. */
export interface FilterSet extends SetDefinition {
  /** Given when the set is made; they go by themselves. */
  readonly elements: readonly string[];
}

export interface FilterProgram {
  readonly sets: readonly FilterSet[];
  /** The first is the one that chains of destinations jump to. */
  readonly chains: readonly OwnChain[];
}

/** A client that waits for the window to open asks within a second or three. */
const notedSeconds = 10;
const bytesPerMegabit = 125_000;

export function filterLine(filter: Filter): string {
  return `jump ${filterChain('in', filter.uuid)}`;
}

/** Where connections are counted that the router opens for clients; undefined: the kind does not count them. */
export function openingLine({ kind, uuid }: Filter): string | undefined {
  return kind.enforcement.openings && `jump ${filterChain('opening', uuid)}`;
}

export function filterProgram(filter: Filter): FilterProgram {
  const { enforcement } = filter.kind;
  const meters = enforcement.meters.map((meter) => askedMeter(filter, meter));
  const { chains, gone } = withMeterChains(filterChains(filter, enforcement), meters, discardOf(filter));
  return { sets: filterSets(filter, enforcement).filter(({ name }) => !gone.has(name)), chains };
}

/** Lines ask meters by their conditions: see `askedMeter`. */
function filterChains(filter: Filter, enforcement: KindEnforcement): OwnChain[] {
  const { kind, uuid } = filter;
  const family = filter.dst.family;
  const limited = filter.rateLimitMegabitsPerSecond !== undefined;
  const verdict = { pass: filterChain('pass', uuid), discard: filterChain('discard', uuid) };
  const discard = discardOf(filter);
  const branches: OwnChain[] = [];
  const above = (name: string): string => {
    const meter = enforcement.meters.find((each) => each.name === name);
    if (meter === undefined) throw new Error(`${kind.name} has no meter ${name}`);
    return askedMeter(filter, meter).condition;
  };
  const lines = enforcement.compile({
    family,
    filter,
    // Back to the destination's chain, which alone has jumped: inside, a filter goes on by goto.
    pass: limited ? `goto ${verdict.pass}` : 'return',
    discard,
    established: 'ct state 2',
    known: `${memoryKey(enforcement, family)} @${filterSet('known', uuid)}`,
    settling: `meta nfproto @${filterSet('settling', uuid)}`,
    remember: `update @${filterSet('known', uuid)} { ${memoryKey(enforcement, family)} }`,
    noteSyn: `${sequenceAsMark} update @${filterSet('syns', uuid)} { ${segment(family)} }`,
    repeatsSyn: `${sequenceAsMark} ${segment(family)} @${filterSet('syns', uuid)}`,
    refused: `${sourceKey(family)} @${filterSet('refused', uuid)}`,
    above,
    branch(name, body) {
      const chain = filterChain(`branch_${name}`, uuid);
      branches.push({ name: chain, lines: [...body, discard], counted: false });
      return `goto ${chain}`;
    },
  });
  const bodies: OwnChain[] = [];
  const entries: string[] = [];
  for (const scope of scopesOf(filter)) {
    const body = lines[scope.transport];
    if (body === undefined) continue;
    const name = filterChain(scope.transport, uuid);
    bodies.push({ name, lines: [...body, discard], counted: false });
    for (const conditions of scopeConditions(filter, scope)) entries.push([...conditions, `goto ${name}`].join(' '));
  }
  return [
    { name: filterChain('in', uuid), lines: entries, counted: false },
    ...bodies,
    ...branches,
    ...openingChains(filter, enforcement),
    ...(limited ? [{ name: verdict.pass, lines: rateLines(filter), counted: false }] : []),
    { name: verdict.discard, lines: ['counter drop'], counted: true },
  ];
}

/** How lines write that a packet is above the meter, and what becomes of that in the kernel. */
function askedMeter(filter: Filter, meter: KindMeter): AskedMeter {
  const set = filterSet(`meter_${meter.name}`, filter.uuid);
  const tellsNobodyApart = meter.of === 'destination' && isOneAddress(filter.dst);
  return {
    condition: `above_${meter.name}`,
    set,
    chain: filterChain(`meter_${meter.name}`, filter.uuid),
    ...(tellsNobodyApart
      ? { plain: limitText(meter, 'over ') }
      : { lines: [...meterLines(filter, meter), discardOf(filter)] }),
  };
}

/**
 * Of a chain that is jumped to: who is within the meter returns by the first line, at the price of one look-up. Others are above
 * it, or have no place in it and share a bound (decision 0016). No line may ask whether a key is in the set otherwise than by `!=`:
 * the kernel has the limit of an element that it finds count the packet, and finds none above its limit.
 */
function meterLines(filter: Filter, meter: KindMeter): string[] {
  const { family } = filter.dst;
  const key = meter.of === 'source' ? sourceKey(family) : destination(family);
  const set = filterSet(`meter_${meter.name}`, filter.uuid);
  return [
    `update @${set} { ${key} ${limitText(meter)} } return`,
    `${key} != @${set} ${limitText(sharedBound(meter))} return`,
  ];
}

function limitText({ packetsPerSecond, burst }: Pick<KindMeter, 'packetsPerSecond' | 'burst'>, over = ''): string {
  return `limit rate ${over}${packetsPerSecond}/second burst ${burst} packets`;
}

function openingChains(filter: Filter, { meters, openings }: KindEnforcement): OwnChain[] {
  if (openings === undefined) return [];
  const { uuid, dst, kind } = filter;
  const meter = meters.find(({ name }) => name === openings.meter);
  if (meter?.of !== 'source') throw new Error(`${kind.name} has no meter ${openings.meter} of sources`);
  const refuse = `update @${filterSet('refused', uuid)} { ${sourceKey(dst.family)} }`;
  const discard = discardOf(filter);
  const lines = [...meterLines(filter, meter), `${refuse} ${discard}`, discard];
  return [{ name: filterChain('opening', uuid), lines, counted: false }];
}

function discardOf({ uuid }: Filter): string {
  return `goto ${filterChain('discard', uuid)}`;
}

/**
 * Bytes: nft's `mbytes` are 2^20. What is limited is the IP packet, without the frame around it. The bucket holds what
 * passes in one second: the kernel adds a burst to that, and takes nothing off (nft_limit_init; decision 0024). So what
 * was put together of one flow's packets on the way, up to 64 KiB, fits in at any rate.
 */
function rateLines(filter: Filter): string[] {
  const megabits = filter.rateLimitMegabitsPerSecond;
  if (megabits === undefined) return [];
  return [`limit rate over ${megabits * bytesPerMegabit} bytes/second ${discardOf(filter)}`];
}

function filterSets(filter: Filter, { meters, openings, remembers, settles, tracking }: KindEnforcement): FilterSet[] {
  const { uuid, dst } = filter;
  const address = `ipv${dst.family}_addr`;
  const dynamic = (name: string, type: string, most: number, seconds: number): FilterSet => ({
    name,
    kind: 'set',
    properties: [
      `type ${type}`,
      ...(most < mostRemembered ? [`size ${most}`] : []),
      'flags dynamic,timeout',
      `timeout ${seconds}s`,
    ],
    elements: [],
  });
  const sets = meters.map((meter) =>
    dynamic(
      filterSet(`meter_${meter.name}`, uuid),
      meter.of === 'source' ? `${address} . ${address}` : address,
      mostApart(meter),
      placeSeconds(meter),
    ),
  );
  if (remembers) {
    const [type, most] =
      'flows' in remembers
        ? [`${address} . ${address} . inet_service . inet_service`, remembers.flows]
        : [`${address} . ${address}`, remembers.sources];
    sets.push(dynamic(filterSet('known', uuid), type, most, remembers.seconds));
  }
  if (tracking === 'all but SYNs') {
    const type = `${address} . ${address} . inet_service . inet_service . mark`;
    sets.push(dynamic(filterSet('syns', uuid), type, mostRemembered, notedSeconds));
  }
  if (openings) {
    const type = `${address} . ${address}`;
    sets.push(dynamic(filterSet('refused', uuid), type, mostRemembered, openings.refusedSeconds));
  }
  if (settles) {
    sets.push({
      name: filterSet('settling', uuid),
      kind: 'set',
      properties: ['type nf_proto', 'flags timeout'],
      elements: [`${dst.family === 4 ? 2 : 10} timeout ${settlingSeconds}s`],
    });
  }
  return sets;
}

function memoryKey({ remembers }: KindEnforcement, family: Family): string {
  return remembers !== undefined && 'flows' in remembers ? flowKey(family) : sourceKey(family);
}

function isOneAddress({ family, length }: Prefix): boolean {
  return length === familyBits(family);
}

/** A source, as one-source.ts has it, and its destination. */
function sourceKey(family: Family): string {
  if (family === 4) return 'ip saddr . ip daddr';
  const mask = (1n << 128n) - (1n << BigInt(128 - sourceBits[6]));
  return `ip6 saddr & ${formatAddress({ family, value: mask })} . ip6 daddr`;
}

/** Ports are loaded plainly: a later fragment, which shows none, has not got past the scope's conditions. */
function flowKey(family: Family): string {
  const addresses = family === 4 ? 'ip saddr . ip daddr' : 'ip6 saddr . ip6 daddr';
  return `${addresses} . th sport . th dport`;
}

/**
 * A set's key may hold a sequence number as a plain integer, but nft 1.0.6 dies of listing such a set. So it is put where a type
 * has a length: into the mark of a packet that goes no further.
 */
const sequenceAsMark = 'meta mark set tcp sequence';

function segment(family: Family): string {
  return `${flowKey(family)} . meta mark`;
}

function destination(family: Family): string {
  return family === 4 ? 'ip daddr' : 'ip6 daddr';
}
