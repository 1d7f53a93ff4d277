/**
 * What a zone must hold so that resolvers find their way into the zones inside it: NS records at the name of each zone
 * that begins right below (RFC 1034, 4.2), and CNAME records from the names of addresses to where classless zones have
 * them (RFC 2317). Owns which records those are; who writes them is another question.
 */
import type { AddressRange } from '../net/prefix.ts';
import { ownerName, type ReverseZone } from './reverse-name.ts';
import type { ZoneIndex } from './zone-index.ts';
import type { ZoneDriver } from './zone-settings.ts';

export interface KeptZone extends ReverseZone {
  readonly driver: ZoneDriver;
  readonly nameservers?: readonly string[] | undefined;
}

export type Alias = readonly [owner: string, target: string];

export interface NestedNames<Z extends ReverseZone> {
  /** The zones right below: a name inside one of them is not this zone's. */
  readonly cuts: readonly Z[];
  readonly aliases: readonly Alias[];
}

/** `zones`: those of the index. */
export function nestedNames<Z extends ReverseZone>(zone: Z, zones: readonly Z[], index: ZoneIndex<Z>): NestedNames<Z> {
  const aliases = new Map<string, string>();
  const cuts: Z[] = [];
  for (const inner of zones) {
    if (!isInside(inner, zone)) continue;
    if (zoneAbove(inner, index) === zone) cuts.push(inner);
    // Names of other zones are below this one's as they are.
    if (!inner.classless && !zone.classless) continue;
    const { family, start, end } = inner.range;
    for (let value = start; value <= end; value += 1n) {
      const address = { family, value };
      const owner = ownerName(zone, address);
      const own = index.match(address);
      // The name itself may lie in a zone between.
      if (own === undefined || index.enclosing(owner) !== zone) continue;
      const target = ownerName(own, address);
      if (target !== owner) aliases.set(owner, target);
    }
  }
  return { cuts, aliases: [...aliases] };
}

/** The zone in which this one's name stands: the one that must delegate it. */
export function zoneAbove<Z extends ReverseZone>(zone: Z, index: ZoneIndex<Z>): Z | undefined {
  return index.enclosing(zone.name.slice(zone.name.indexOf('.') + 1));
}

function isInside(inner: ReverseZone, outer: ReverseZone): boolean {
  const { family, start, end } = outer.range;
  const { range } = inner;
  return inner !== outer && range.family === family && start <= range.start && range.end <= end;
}

/**
 * The name servers that a zone is delegated to. An embedded zone without any has those of the zone around it, which the
 * same server serves. Undefined: nobody said.
 */
export function nameserversOf(zone: KeptZone, zones: readonly KeptZone[]): readonly string[] | undefined {
  if (zone.nameservers !== undefined || zone.driver !== 'embedded') return zone.nameservers;
  let around: KeptZone | undefined;
  for (const outer of zones) {
    if (outer.driver !== 'embedded' || outer.nameservers === undefined || !isInside(zone, outer)) continue;
    if (around === undefined || isInside(outer, around)) around = outer;
  }
  return around?.nameservers;
}

/** What must be said of a zone in the one above it. */
export interface Delegation {
  /** Where the records belong. */
  readonly zone: string;
  /** Levee makes them itself, in a zone that it serves. */
  readonly isMade: boolean;
  /** Lines of a zone file; without NS where nobody said which name servers the zone has. */
  readonly records: readonly string[];
}

/**
 * Undefined for a zone that the world delegates as usual: nothing around it is known here. `zones`: those of the index.
 */
export function delegationOf<Z extends KeptZone>(
  zone: Z,
  zones: readonly Z[],
  index: ZoneIndex<Z>,
): Delegation | undefined {
  const above = zoneAbove(zone, index);
  if (above === undefined && !zone.classless) return undefined;
  const nameservers = nameserversOf(zone, zones);
  return {
    zone: above?.name ?? zone.name.slice(zone.name.indexOf('.') + 1),
    isMade: above?.driver === 'embedded',
    records: [
      ...(nameservers ?? []).map((server) => `${zone.name}. IN NS ${server}.`),
      ...(zone.classless ? runsOf(zone, index).map((run) => aliasLine(zone, run)) : []),
    ],
  };
}

/** The addresses of a classless zone that stand in no narrower one, in runs. */
function runsOf<Z extends ReverseZone>(zone: Z, index: ZoneIndex<Z>): AddressRange[] {
  const { family, start, end } = zone.range;
  const runs: { family: typeof family; start: bigint; end: bigint }[] = [];
  for (let value = start; value <= end; value += 1n) {
    if (index.match({ family, value }) !== zone) continue;
    const last = runs.at(-1);
    if (last?.end === value - 1n) last.end = value;
    else runs.push({ family, start: value, end: value });
  }
  return runs;
}

/** BIND's and others' way of writing many alike. */
function aliasLine({ name }: ReverseZone, { start, end }: AddressRange): string {
  const around = name.slice(name.indexOf('.') + 1);
  return `$GENERATE ${start & 0xffn}-${end & 0xffn} $.${around}. CNAME $.${name}.`;
}
