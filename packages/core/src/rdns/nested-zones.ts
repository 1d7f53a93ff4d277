/**
 * What a zone must hold so that resolvers find their way into the zones inside it: NS records at the name of each zone
 * that begins right below (RFC 1034, 4.2), and CNAME records from the names of addresses to where classless zones have
 * them (RFC 2317). Owns which records those are; who writes them is another question.
 */
import type { Address, AddressRange } from '../net/prefix.ts';
import { ownerName, type ReverseZone, reverseName } from './reverse-name.ts';
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

/** Of each zone that has any. `zones`: those of the index. */
export function nestedNames<Z extends ReverseZone>(
  zones: readonly Z[],
  index: ZoneIndex<Z>,
): ReadonlyMap<Z, NestedNames<Z>> {
  const nested = new Map<Z, { readonly cuts: Z[]; readonly aliases: Map<string, string> }>();
  const inside = (zone: Z) => {
    const found = nested.get(zone);
    if (found !== undefined) return found;
    const made = { cuts: [], aliases: new Map<string, string>() };
    nested.set(zone, made);
    return made;
  };
  for (const zone of zones) {
    const above = zoneAbove(zone, index);
    if (above !== undefined) inside(above).cuts.push(zone);
    if (!zone.classless) continue;
    for (const address of addressesOf(zone.range)) {
      const own = index.match(address) ?? zone;
      const target = ownerName(own, address);
      if (own !== zone) inside(zone).aliases.set(ownerName(zone, address), target);
      const name = reverseName(address);
      const asked = index.enclosing(name);
      if (asked !== undefined && asked !== own) inside(asked).aliases.set(name, target);
    }
  }
  return new Map([...nested].map(([zone, { cuts, aliases }]) => [zone, { cuts, aliases: [...aliases] }]));
}

/** The zone in which this one's name stands: the one that must delegate it. */
function zoneAbove<Z extends ReverseZone>(zone: Z, index: ZoneIndex<Z>): Z | undefined {
  return index.enclosing(nameAbove(zone));
}

function nameAbove({ name }: ReverseZone): string {
  return name.slice(name.indexOf('.') + 1);
}

/** Of a classless zone: 256 at most. */
function* addressesOf({ family, start, end }: AddressRange): Generator<Address> {
  for (let value = start; value <= end; value += 1n) yield { family, value };
}

/**
 * The name servers that a zone is delegated to. An embedded zone without any has those of the embedded zone above it, which
 * the same server serves. Undefined: nobody said.
 */
export function nameserversOf<Z extends KeptZone>(zone: Z, index: ZoneIndex<Z>): readonly string[] | undefined {
  if (zone.driver !== 'embedded') return zone.nameservers;
  for (let each: Z | undefined = zone; each !== undefined; each = zoneAbove(each, index)) {
    if (each.driver === 'embedded' && each.nameservers !== undefined) return each.nameservers;
  }
  return undefined;
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

/** Undefined for a zone that the world delegates as any other: nothing around it is known here. */
export function delegationOf<Z extends KeptZone>(zone: Z, index: ZoneIndex<Z>): Delegation | undefined {
  const above = zoneAbove(zone, index);
  if (above === undefined && !zone.classless) return undefined;
  return {
    zone: above?.name ?? nameAbove(zone),
    isMade: above?.driver === 'embedded',
    records: [
      ...(nameserversOf(zone, index) ?? []).map((server) => `${zone.name}. IN NS ${server}.`),
      ...(zone.classless ? runsOf(zone, index).map((run) => aliasLine(zone, run)) : []),
    ],
  };
}

/** The addresses of a classless zone that stand in no narrower one, in runs. */
function runsOf<Z extends ReverseZone>(zone: Z, index: ZoneIndex<Z>): AddressRange[] {
  const runs: { family: Address['family']; start: bigint; end: bigint }[] = [];
  for (const address of addressesOf(zone.range)) {
    if (index.match(address) !== zone) continue;
    const { family, value } = address;
    const last = runs.at(-1);
    if (last?.end === value - 1n) last.end = value;
    else runs.push({ family, start: value, end: value });
  }
  return runs;
}

/** BIND's and others' way of writing many alike. */
function aliasLine(zone: ReverseZone, { start, end }: AddressRange): string {
  return `$GENERATE ${start & 0xffn}-${end & 0xffn} $.${nameAbove(zone)}. CNAME $.${zone.name}.`;
}
