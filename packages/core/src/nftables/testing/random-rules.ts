/**
 * Random rules for properties: few addresses, so that prefixes nest and bodies repeat; every field and every protocol.
 * Only rules that the parser would let through. Never used outside tests.
 */
import { type ProtocolName, protocolNames } from '@levee/contract/protocols.ts';
import fc from 'fast-check';
import { familyOfProtocol, hasPorts } from '../../firewall/protocol-traits.ts';
import type { Rule } from '../../firewall/rule.ts';
import { type Family, type Prefix, prefixOf } from '../../net/prefix.ts';

const bases: Record<Family, bigint> = { 4: 0xcb007100n, 6: 0x20010db8000000000000000000000000n };
const lengths: Record<Family, readonly number[]> = {
  4: [0, 8, 23, 24, 28, 32, 32, 32],
  6: [0, 32, 48, 63, 64, 128, 128],
};

export const arbitraryPrefix: fc.Arbitrary<Prefix> = fc
  .record({ family: fc.constantFrom<Family>(4, 6), pick: fc.nat(7), host: fc.nat(40) })
  .map(({ family, pick, host }) => {
    const length = lengths[family][pick % lengths[family].length] ?? 0;
    return prefixOf({ family, value: bases[family] + BigInt(host) }, length);
  });

export function arbitraryRange(maximum: bigint): fc.Arbitrary<{ start: bigint; end: bigint }> {
  const point = fc.bigInt({ min: 0n, max: maximum });
  return fc.oneof(
    point.map((value) => ({ start: value, end: value })),
    fc.tuple(point, point).map(([a, b]) => (a < b ? { start: a, end: b } : { start: b, end: a })),
    fc.constant({ start: 0n, end: maximum }),
    fc.nat(16).map((length) => ({ start: 0n, end: (maximum + 1n) / 2n ** BigInt(length) - 1n })),
  );
}

export const arbitraryPorts = arbitraryRange(65535n).map(({ start, end }) => ({
  start: Number(start),
  end: Number(end),
}));

export function optional<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined, freq: 2 });
}

/** `uuid` and `sequence` from a small number: the same number again is the same rule changed. */
export function arbitraryRule(numbers: number): fc.Arbitrary<Rule> {
  return fc
    .record({
      number: fc.nat(numbers - 1),
      dst: arbitraryPrefix,
      protocol: fc.oneof(
        fc.constantFrom<ProtocolName>('any', 'tcp', 'udp'),
        fc.constantFrom<ProtocolName>(...protocolNames),
      ),
      action: fc.constantFrom('accept', 'continue', 'drop', 'reject'),
      priority: fc.constantFrom(1, 5, 1000, 1000, 2147483647),
      source: optional(fc.boolean()),
      range4: arbitraryRange(2n ** 32n - 1n),
      range6: arbitraryRange(2n ** 128n - 1n),
      sourcePorts: optional(arbitraryPorts),
      destinationPorts: optional(arbitraryPorts),
      tcpFlags: optional(fc.integer({ min: 1, max: 255 })),
      rateLimitPacketsPerSecond: optional(fc.constantFrom(1, 50, 123456789, 4294967295)),
      packetLengthBytes: optional(fc.integer({ min: 1, max: 65535 })),
      packetType: fc.option(fc.constantFrom('broadcast', 'host', 'multicast', 'other'), { nil: undefined, freq: 4 }),
      connectionState: fc.option(fc.constantFrom('established', 'invalid', 'new', 'related'), {
        nil: undefined,
        freq: 4,
      }),
      disabled: fc.nat(9).map((value) => value === 0),
    })
    .map((draft): Rule => {
      const { family } = draft.dst;
      const fits = (familyOfProtocol(draft.protocol) ?? family) === family;
      const protocol = fits ? draft.protocol : 'any';
      const range = family === 4 ? draft.range4 : draft.range6;
      return present<Rule>({
        uuid: ruleUuid(draft.number),
        sequence: draft.number,
        priority: draft.priority,
        dst: draft.dst,
        protocol,
        action: draft.action,
        src: draft.source ? { family, ...range } : undefined,
        sourcePorts: hasPorts(protocol) ? draft.sourcePorts : undefined,
        destinationPorts: hasPorts(protocol) ? draft.destinationPorts : undefined,
        tcpFlags: protocol === 'tcp' ? draft.tcpFlags : undefined,
        rateLimitPacketsPerSecond: draft.rateLimitPacketsPerSecond,
        packetLengthBytes: draft.packetLengthBytes,
        packetType: draft.packetType,
        connectionState: draft.connectionState,
        disabled: draft.disabled,
      });
    });
}

/** Many destinations with one of few bodies under wide prefixes, nested, with many rules: what sharing and runs are for. */
export function arbitraryProfileRule(numbers: number): fc.Arbitrary<Rule> {
  return fc.record({ number: fc.nat(numbers - 1), wide: fc.nat(3), port: fc.nat(1), limited: fc.nat(5) }).map(
    ({ number, wide, port, limited }): Rule =>
      present<Rule>({
        uuid: ruleUuid(number),
        sequence: number,
        priority: wide <= 1 ? 1 + (number % 60) : 30,
        dst: prefixOf({ family: 4, value: bases[4] + BigInt(number % 200) }, [24, 28][wide] ?? 32),
        protocol: 'udp',
        action: port === 0 ? 'drop' : 'continue',
        destinationPorts: { start: wide <= 1 ? number : port, end: wide <= 1 ? number : port },
        rateLimitPacketsPerSecond: limited === 0 ? 100 : undefined,
        disabled: false,
      }),
  );
}

export function ruleUuid(number: number): string {
  return `0190a000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

type WithUndefined<T> = { [K in keyof T]: T[K] | (Record<never, never> extends Pick<T, K> ? undefined : never) };

/** Absent fields are left out. */
export function present<T extends object>(entry: WithUndefined<T>): T {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)) as T;
}
