/**
 * Finds the zone in which an address' PTR record stands: of those that cover it, the narrowest; and the zone in which a
 * name stands. Zones either nest or have nothing in common (`zoneClash` tells where they do not), so that there is exactly one.
 */
import type { Address, AddressRange } from '../net/prefix.ts';
import { rangeContainsAddress } from '../net/range.ts';
import { type ReverseZone, reverseName } from './reverse-name.ts';

/** One look-up a label: at most 34 however many zones there are. */
export class ZoneIndex<Z extends ReverseZone> {
  readonly #byName = new Map<string, Z>();
  /** By the /24 zone's name that they lie below, narrowest first. */
  readonly #classless = new Map<string, Z[]>();

  constructor(zones: Iterable<Z>) {
    for (const zone of zones) {
      this.#byName.set(zone.name, zone);
      if (!zone.classless) continue;
      const parent = zone.name.slice(zone.name.indexOf('.') + 1);
      const siblings = [...(this.#classless.get(parent) ?? []), zone];
      this.#classless.set(
        parent,
        siblings.sort((a, b) => Number(sizeOf(a.range) - sizeOf(b.range))),
      );
    }
  }

  match(address: Address): Z | undefined {
    let name = reverseName(address);
    for (;;) {
      // A classless zone is narrower than the /24 whose name its own contains.
      const classless = this.#classless.get(name)?.find((zone) => rangeContainsAddress(zone.range, address));
      const found = classless ?? this.#byName.get(name);
      if (found !== undefined) return found;
      const dot = name.indexOf('.');
      if (dot < 0) return undefined;
      name = name.slice(dot + 1);
    }
  }

  /** The zone with the longest name among those that the name lies in, its own included. */
  enclosing(name: string): Z | undefined {
    for (let rest = name; ; rest = rest.slice(rest.indexOf('.') + 1)) {
      const found = this.#byName.get(rest);
      if (found !== undefined || !rest.includes('.')) return found;
    }
  }
}

function sizeOf(range: AddressRange): bigint {
  return range.end - range.start;
}

/** Why two zones cannot both be there; undefined: they can. */
export function zoneClash(a: ReverseZone, b: ReverseZone): 'same_name' | 'same_addresses' | 'overlap' | undefined {
  if (a.name === b.name) return 'same_name';
  if (a.range.family !== b.range.family || a.range.end < b.range.start || b.range.end < a.range.start) return undefined;
  if (a.range.start === b.range.start && a.range.end === b.range.end) return 'same_addresses';
  return within(a.range, b.range) || within(b.range, a.range) ? undefined : 'overlap';
}

function within(inner: AddressRange, outer: AddressRange): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}
