/**
 * Random filters over the small world: every kind, narrowed and not, nested, of equal priorities. Only
 * filters that the parser would let through; meters and limits so wide that no test reaches them (what happens above them
 * is measured elsewhere). Must never decide what they mean.
 */
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { type Filter, filterRateBounds } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import { withWideMeters } from '@levee/core/filter/testing/vector-run.ts';
import type { PortRange } from '@levee/core/firewall/rule.ts';
import type { AddressRange, Family, Prefix } from '@levee/core/net/prefix.ts';
import type { Random } from '@levee/lab/random.ts';
import { truncate } from './random-rules.ts';
import { hosts, ports, prefixLengths, sources, trackedHosts, trackedZone } from './world.ts';

/** They meet at the same hosts, a SYN proxy and whatever else looks at connections. */
const ofTcp = filterKinds.filter(({ transports }) => transports.includes('tcp'));

/** Whether it needs connections, and so stands in the tracked zone alone. */
function isStateful({ enforcement }: FilterKind): boolean {
  return enforcement.tracking !== 'nothing';
}

export class FilterMaker {
  private sequence = 0;
  private readonly random: Random;
  private readonly stateful: boolean;

  /** `stateful`: some need connections (only inside the tracked zone). */
  constructor(random: Random, wishes: { readonly stateful: boolean }) {
    this.random = random;
    this.stateful = wishes.stateful;
  }

  filters(count: number): Filter[] {
    return Array.from({ length: count }, () => this.filter());
  }

  /** The same filter with another priority, limit or range: what a changed row may bring. */
  changed(filter: Filter): Filter {
    const { random } = this;
    if (random.chance(0.6)) return { ...filter, priority: this.priority() };
    const { destinationPorts: _, ...rest } = filter;
    return this.withPorts({ ...rest, priority: this.priority() });
  }

  private filter(): Filter {
    const { random } = this;
    this.sequence += random.integer(1, 3);
    const family: Family = random.chance(0.5) ? 4 : 6;
    const kinds = this.stateful && random.chance(0.4) ? ofTcp : filterKinds;
    const kind = random.pick(
      kinds.filter((each) => each.families.includes(family) && (this.stateful || !isStateful(each))),
    );
    // Apart from rules' uuids.
    const uuid = `0191${random.bits(16).toString(16).padStart(4, '0')}-0000-7000-8000-${this.sequence.toString(16).padStart(12, '0')}`;
    const bare: Filter = {
      uuid,
      sequence: this.sequence,
      priority: this.priority(),
      dst: this.destination(kind, family),
      kind,
      ...(random.chance(0.2) && { src: this.sourceRange(family) }),
      ...(kind.destinationPorts !== 'none' && random.chance(0.15) && { sourcePorts: this.portRange() }),
      ...(random.chance(0.15) && { rateLimitMegabitsPerSecond: filterRateBounds.maximum }),
    };
    return withWideMeters(this.withPorts(bare));
  }

  private withPorts(filter: Filter): Filter {
    const { destinationPorts } = filter.kind;
    if (destinationPorts === 'none') return filter;
    if (destinationPorts === 'optional' && this.random.chance(0.6)) return filter;
    return { ...filter, destinationPorts: this.portRange() };
  }

  private destination(kind: FilterKind, family: Family): Prefix {
    const { random } = this;
    const zone = trackedZone[family];
    const inside = isStateful(kind) || (this.stateful && random.chance(0.3));
    const host = random.pick(inside ? trackedHosts[family] : hosts[family]);
    const shortest = Math.max(kind.shortestPrefix?.[family] ?? 0, inside ? zone.length : 0);
    return truncate(family, host, random.pick(prefixLengths[family].filter((each) => each >= shortest)));
  }

  private sourceRange(family: Family): AddressRange {
    const { random } = this;
    const [a, b] = [random.pick(sources[family]), random.pick(sources[family])];
    return { family, start: a < b ? a : b, end: a < b ? b : a };
  }

  private portRange(): PortRange {
    const { random } = this;
    const [a, b] = [random.pick(ports), random.pick(random.chance(0.5) ? ports : [65_535])];
    return { start: Math.min(a, b), end: Math.max(a, b) };
  }

  private priority(): number {
    return this.random.pick([1, 5, 10, 10, 1000, 2_147_483_647]);
  }
}
