/**
 * Random rules over the small world: nested prefixes, every field, every action, equal priorities, disabled ones.
 * Only rules that the parser would let through. Must never decide what they mean.
 */
import { protocolNames } from '@levee/contract/protocols.ts';
import {
  acceptsTcpFlags,
  extensionHeaderNames,
  familyOfProtocol,
  hasPorts,
} from '@levee/core/firewall/protocol-traits.ts';
import type { ConnectionState, PortRange, Rule } from '@levee/core/firewall/rule.ts';
import type { AddressRange, Family, Prefix } from '@levee/core/net/prefix.ts';
import type { Random } from '@levee/lab/random.ts';
import { hosts, lengths, ports, prefixLengths, sources, trackedHosts, trackedZone } from './world.ts';

/** So high that no test reaches it: what happens within a limit is decided, what happens above is measured elsewhere. */
const unreachedRate = 4_000_000_000;

export interface RuleWishes {
  /** Some of the rules look at connections (only inside the tracked zone). */
  stateful: boolean;
}

export class RuleMaker {
  private sequence = 0;
  private readonly random: Random;
  private readonly wishes: RuleWishes;

  constructor(random: Random, wishes: RuleWishes) {
    this.random = random;
    this.wishes = wishes;
  }

  rules(count: number): Rule[] {
    return Array.from({ length: count }, () => this.rule());
  }

  rule(): Rule {
    const { random } = this;
    this.sequence += random.integer(1, 3);
    const uuid = `0190${random.bits(16).toString(16).padStart(4, '0')}-0000-7000-8000-${this.sequence.toString(16).padStart(12, '0')}`;
    return this.withFields({ uuid, sequence: this.sequence }, random.chance(0.5) ? 4 : 6);
  }

  /** The same rule (uuid, sequence), other fields: what a PATCH does. Now and then another destination. */
  changed(rule: Rule): Rule {
    const { random } = this;
    const { uuid, sequence } = rule;
    if (random.chance(0.3)) return { ...rule, disabled: !rule.disabled };
    if (random.chance(0.3)) return { ...rule, priority: this.priority() };
    const next = this.withFields({ uuid, sequence }, rule.dst.family);
    return random.chance(0.7) && this.mayBeAt(next, rule.dst) ? { ...next, dst: rule.dst } : next;
  }

  private mayBeAt(rule: Rule, dst: Prefix): boolean {
    return rule.connectionState === undefined || covers(trackedZone[dst.family], dst);
  }

  private withFields(identity: Pick<Rule, 'uuid' | 'sequence'>, family: Family): Rule {
    const { random } = this;
    const tracked = this.wishes.stateful && random.chance(0.4);
    const protocol = random.weighted([
      [25, 'any' as const],
      [5, family === 4 ? ('ip' as const) : ('any' as const)],
      [22, 'tcp' as const],
      [18, 'udp' as const],
      [6, family === 4 ? ('icmp' as const) : ('ipv6-icmp' as const)],
      [8, family === 4 ? ('ah' as const) : random.pick(extensionHeaderNames)],
      [20, random.pick(protocolNames.filter((name) => (familyOfProtocol(name) ?? family) === family))],
    ]);
    const withPorts = hasPorts(protocol) && random.chance(0.4);
    const side = random.pick(['source', 'destination', 'both'] as const);
    const state = tracked && random.chance(0.7) ? this.connectionState() : undefined;
    return {
      ...identity,
      dst: this.destination(family, tracked),
      protocol,
      action: random.weighted([
        [25, 'accept' as const],
        [20, 'continue' as const],
        [32, 'drop' as const],
        [23, 'reject' as const],
      ]),
      priority: this.priority(),
      disabled: random.chance(0.07),
      ...(random.chance(0.25) && { src: this.sourceRange(family) }),
      ...(withPorts && side !== 'destination' && { sourcePorts: this.portRange() }),
      ...(withPorts && side !== 'source' && { destinationPorts: this.portRange() }),
      ...(acceptsTcpFlags(protocol) && random.chance(0.4) && { tcpFlags: this.flags() }),
      ...(random.chance(0.1) && { rateLimitPacketsPerSecond: unreachedRate }),
      ...(random.chance(0.12) && { packetLengthBytes: random.pick([...lengths, 1, 20, 65535]) }),
      ...(random.chance(0.15) && {
        packetType: random.weighted([
          [3, 'host' as const],
          [1, 'broadcast' as const],
          [1, 'multicast' as const],
          [1, 'other' as const],
        ]),
      }),
      ...(state && { connectionState: state }),
    };
  }

  private priority(): number {
    return this.random.pick([1, 2, 5, 5, 10, 10, 10, 1000, 2147483647]);
  }

  private connectionState(): ConnectionState {
    return this.random.pick(['new', 'established', 'established', 'related', 'invalid'] as const);
  }

  private destination(family: Family, tracked: boolean): Prefix {
    const { random } = this;
    const zone = trackedZone[family];
    const host = random.chance(0.85)
      ? random.pick(tracked ? trackedHosts[family] : hosts[family])
      : tracked
        ? zone.value | random.bits((family === 4 ? 32 : 128) - zone.length)
        : neighbour(random, family, random.pick(hosts[family]));
    const length = random.pick(prefixLengths[family].filter((each) => !tracked || each >= zone.length));
    return truncate(family, host, length);
  }

  private sourceRange(family: Family): AddressRange {
    const { random } = this;
    const start = random.pick(sources[family]);
    if (random.chance(0.4)) return { family, start, end: start };
    if (random.chance(0.5)) {
      const prefix = truncate(family, start, random.pick(prefixLengths[family]));
      const bits = BigInt((family === 4 ? 32 : 128) - prefix.length);
      return { family, start: prefix.value, end: prefix.value + (1n << bits) - 1n };
    }
    const end = random.pick(sources[family]);
    return start <= end ? { family, start, end } : { family, start: end, end: start };
  }

  private portRange(): PortRange {
    const { random } = this;
    const start = random.pick(ports);
    if (random.chance(0.5)) return { start, end: start };
    const end = random.pick(ports);
    return start <= end ? { start, end } : { start: end, end: start };
  }

  private flags(): number {
    const { random } = this;
    const flag = (): number => 1 << random.integer(0, 7);
    return random.chance(0.6) ? flag() : flag() | flag();
  }
}

export function truncate(family: Family, value: bigint, length: number): Prefix {
  const host = BigInt((family === 4 ? 32 : 128) - length);
  return { family, value: (value >> host) << host, length };
}

export function covers(wide: Prefix, narrow: Prefix): boolean {
  return (
    wide.family === narrow.family &&
    wide.length <= narrow.length &&
    truncate(wide.family, narrow.value, wide.length).value === wide.value
  );
}

/** The same address with one bit turned, inside the protected space: just outside some prefix of it. */
export function neighbour(random: Random, family: Family, host: bigint): bigint {
  const free = family === 4 ? 8 : 96;
  return host ^ (1n << BigInt(random.integer(0, free - 1)));
}
