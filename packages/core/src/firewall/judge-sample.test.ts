import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { arbitraryRule } from '../nftables/testing/random-rules.ts';
import { decodePacket, decodeSample } from './decode-packet.ts';
import { evaluate } from './evaluate.ts';
import { judgeSample, matchSample } from './judge-sample.ts';
import { findMismatch } from './match.ts';
import type { Packet } from './packet.ts';
import { familyOfProtocol } from './protocol-traits.ts';
import { type ConnectionState, compareRules, type Rule } from './rule.ts';

const surroundings = { packetType: 'host' } as const;
const word = (value: number) => [(value >>> 8) & 255, value & 255];

/** A transport header and some payload; `size` octets in all. */
const transport = fc
  .record({ ports: fc.tuple(fc.nat(65535), fc.nat(65535)), flags: fc.nat(255), options: fc.nat(3), size: fc.nat(90) })
  .map(({ ports, flags, options, size }) => {
    const mptcp = options === 1 ? [30, 4, 0, 0] : options === 2 ? [2, 4, 5, 180] : [];
    const header = [
      ...ports.flatMap(word),
      0,
      0,
      0,
      1,
      0,
      0,
      0,
      0,
      (5 + mptcp.length / 4) << 4,
      flags,
      0,
      1,
      0,
      0,
      0,
      0,
    ];
    return [...header, ...mptcp, ...Array<number>(size).fill(7)];
  });

const protocolNumber = fc.constantFrom(6, 6, 6, 17, 17, 1, 58, 132, 47, 50, 143);
const fragmentField = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(0x2000, 1, 0x2005));

const ipv4 = fc
  .record({ body: transport, protocol: protocolNumber, fragmentField, host: fc.nat(40), options: fc.nat(2) })
  .map(({ body, protocol, fragmentField, host, options }) => {
    const padding = Array<number>(options * 4).fill(1);
    const length = 20 + padding.length + body.length;
    const start = [0x45 + options, 0, ...word(length), 0, 1, ...word(fragmentField), 64, protocol, 0, 0];
    return Uint8Array.from([...start, 198, 51, 100, 9, 203, 0, 113, host, ...padding, ...body]);
  });

const extension = fc.constantFrom<readonly number[]>([0, 1], [60, 1], [43, 1], [51, 4], [44, 0], [60, 9]);
const ipv6 = fc
  .record({
    body: transport,
    protocol: protocolNumber,
    chain: fc.array(extension, { maxLength: 4 }),
    later: fc.nat(4),
    host: fc.nat(40),
  })
  .map(({ body, protocol, chain, later, host }) => {
    const headers = chain.flatMap(([kind = 0, units = 0], index) => {
      const next = chain[index + 1]?.[0] ?? protocol;
      if (kind === 44) return [next, 0, ...word(later === 0 ? 9 : 0), 0, 0, 0, 7];
      const octets = kind === 51 ? (units + 2) * 4 : (units + 1) * 8;
      return [next, units, ...Array<number>(octets - 2).fill(0)];
    });
    const address = (last: number) => [0x20, 0x01, 0x0d, 0xb8, ...Array<number>(11).fill(0), last];
    const payload = [...headers, ...body];
    const start = [0x60, 0, 0, 0, ...word(payload.length), chain[0]?.[0] ?? protocol, 64];
    return Uint8Array.from([...start, ...address(200), ...address(host), ...payload]);
  });

const sampled = fc
  .record({ bytes: fc.oneof(ipv4, ipv6), cut: fc.nat(140) })
  .map(({ bytes, cut }) => ({ bytes, cut: Math.min(bytes.length, cut) }));

const states: readonly (ConnectionState | undefined)[] = [undefined, 'established', 'invalid', 'new', 'related'];

/** The whole packet in every state that a router may know it in. */
function wholes(bytes: Uint8Array): readonly Packet[] {
  const decoded = decodePacket(bytes, surroundings);
  assert.ok(decoded.ok);
  return states.map((state) => ({ ...decoded.packet, ...(state !== undefined && { connectionState: state }) }));
}

/** Mostly for the packet's destination, and often of its protocol or length: rules that are about something else say little. */
const ruleFor = (bytes: Uint8Array) =>
  fc.record({ rule: arbitraryRule(8), near: fc.nat(63) }).map(({ rule, near }): Rule => {
    const { packetLengthBytes, packetType, src, connectionState, ...rest } = rule;
    const family = bytes[0] === 0x60 ? 6 : 4;
    const isNear = (near & 7) !== 0 && (familyOfProtocol(rule.protocol) ?? family) === family;
    const carried = { 6: 'tcp', 17: 'udp' }[bytes[family === 4 ? 9 : 6] ?? 0] ?? 'any';
    return {
      ...rest,
      ...(isNear && { dst: { family, value: 0n, length: 0 } as const }),
      ...((near & 8) !== 0 && { protocol: carried as Rule['protocol'] }),
      ...(near >> 4 === 0 && { packetLengthBytes: bytes.length }),
      ...(near >> 4 === 1 && connectionState !== undefined && { connectionState }),
      ...(near >> 4 === 2 && packetType !== undefined && { packetType }),
      ...(near >> 4 === 3 && src !== undefined && src.family === family && isNear && { src }),
    };
  });

test('what a sample decides is what the whole packet decides, whatever state its connection is in', () => {
  const seen = { matched: 0, unmatched: 0, undecided: 0 };
  const one = sampled.chain((sample) => ruleFor(sample.bytes).map((rule) => ({ ...sample, rule })));
  fc.assert(
    fc.property(one, ({ bytes, cut, rule }) => {
      const sample = decodeSample(bytes.subarray(0, cut), bytes.length, surroundings);
      if (!sample.ok) {
        assert.ok(cut < (bytes[0] === 0x60 ? 40 : 20), sample.reason);
        return;
      }
      const outcome = matchSample(rule, sample);
      const truths = wholes(bytes).map((packet) => findMismatch(rule, packet) === undefined);
      seen[outcome] += 1;
      if (outcome === 'matched') assert.ok(truths.every((truth) => truth));
      if (outcome === 'unmatched') assert.ok(!truths.includes(true));
      if (cut === bytes.length && rule.connectionState === undefined) assert.notEqual(outcome, 'undecided');
    }),
    { numRuns: 8_000 },
  );
  for (const [outcome, times] of Object.entries(seen)) assert.ok(times > 100, `${outcome} came ${times} times`);
});

test('what a set of rules decides about a sample is what it decides about the whole packet', () => {
  const seen = new Map<string, number>();
  const one = sampled.chain((sample) =>
    fc.array(ruleFor(sample.bytes), { minLength: 1, maxLength: 12 }).map((rules) => ({ ...sample, rules })),
  );
  fc.assert(
    fc.property(one, ({ bytes, cut, rules }) => {
      const sample = decodeSample(bytes.subarray(0, cut), bytes.length, surroundings);
      if (!sample.ok) return;
      const verdict = judgeSample(rules.toSorted(compareRules), sample);
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
      if (verdict === 'undecided') return;
      for (const packet of wholes(bytes)) assert.equal(evaluate(rules, packet).verdict, verdict);
    }),
    { numRuns: 4_000 },
  );
  for (const verdict of ['accept', 'drop', 'reject', 'undecided']) assert.ok((seen.get(verdict) ?? 0) > 20, verdict);
});

test('a sample that ends before what a rule asks for is undecided, unless something else rules it out', () => {
  const header = Uint8Array.from([
    0x45, 0, 0, 60, 0, 1, 0, 0, 64, 6, 0, 0, 198, 51, 100, 9, 203, 0, 113, 7, 0x04, 0xd2, 0, 80,
  ]);
  const sample = decodeSample(header, 60, surroundings);
  assert.ok(sample.ok);
  const dst = { family: 4, value: 0xcb007107n, length: 32 } as const;
  const rule: Rule = { uuid: 'u', sequence: 0, priority: 1, dst, protocol: 'tcp', action: 'drop', disabled: false };
  const cases: readonly [object, string][] = [
    [{}, 'matched'],
    [{ destinationPorts: { start: 80, end: 80 } }, 'matched'],
    [{ tcpFlags: 2 }, 'undecided'],
    [{ tcpFlags: 2, destinationPorts: { start: 81, end: 81 } }, 'unmatched'],
    [{ connectionState: 'new' }, 'undecided'],
    [{ connectionState: 'new', packetLengthBytes: 61 }, 'unmatched'],
    [{ protocol: 'mptcp' }, 'undecided'],
    [{ disabled: true }, 'unmatched'],
  ];
  for (const [more, expected] of cases) {
    assert.equal(matchSample({ ...rule, ...more } as Rule, sample), expected, JSON.stringify(more));
  }
});
