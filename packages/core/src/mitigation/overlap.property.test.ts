import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { evaluate } from '../firewall/evaluate.ts';
import type { Packet } from '../firewall/packet.ts';
import { parseRule } from '../firewall/parse.ts';
import { parseFlowrule } from '../flowspec/parse-flowrule.ts';
import { heldByAccept } from './held-by-accept.ts';
import { mayOverlap } from './overlap.ts';
import { flowruleMatches } from './testing/flowrule-matches.ts';
import { matchOfFlowrule, matchOfRule } from './traffic-match.ts';

/** Few values of everything: what is random meets often enough. */
const port = fc.constantFrom(53, 123, 443, 27015);
const length = fc.constantFrom(40, 60, 468, 1000, 1400);
const host = fc.constantFrom(7n, 8n, 9n);
const sources = { 4: 0xc6336400n, 6: 0x20010db8000000010000000000000000n } as const;
const places = { 4: 0xcb007100n, 6: 0x20010db8000000000000000000000000n } as const;
const texts = {
  4: { dst: ['203.0.113.7', '203.0.113.0/24', '203.0.113.8/31'], src: ['198.51.100.7', '198.51.100.0/24'] },
  6: { dst: ['2001:db8::7', '2001:db8::/64', '2001:db8::8/127'], src: ['2001:db8:0:1::7', '2001:db8:0:1::/64'] },
} as const;
const family = fc.constantFrom<4 | 6>(4, 6);
const portText = fc.oneof(port.map(String), fc.constant('53,123'), fc.constant('1-1024'));

const arbitraryPacket = (of: 4 | 6): fc.Arbitrary<Packet> =>
  fc
    .record({
      protocol: fc.constantFrom(6, 17, of === 4 ? 1 : 58, 47),
      source: host,
      destination: host,
      sourcePort: port,
      destinationPort: port,
      tcpFlags: fc.constantFrom(0, 2, 4, 16, 18, 24),
      totalLengthBytes: length,
      fragment: fc.constantFrom(
        undefined,
        undefined,
        { offsetBytes: 0, more: true },
        { offsetBytes: 1480, more: true },
        { offsetBytes: 2960, more: false },
      ),
      type: fc.constantFrom(0, 3, 8, 128),
    })
    .map(
      ({ protocol, source, destination, sourcePort, destinationPort, tcpFlags, totalLengthBytes, fragment, type }) => ({
        family: of,
        source: sources[of] + source,
        destination: places[of] + destination,
        upperProtocol: protocol,
        extensionHeaders: [],
        ...(fragment && { fragment }),
        ...((protocol === 6 || protocol === 17) && { sourcePort, destinationPort }),
        ...(protocol === 6 && { tcpFlags, tcpOptionKinds: [] }),
        ...((protocol === 1 || protocol === 58) && { icmpType: type, icmpCode: 0 }),
        totalLengthBytes,
        packetType: 'host',
      }),
    );

/** A few of the fields: with all of them hardly anything matches. */
const some = <T extends object>(all: fc.Arbitrary<T>, names: readonly string[]) =>
  fc
    .tuple(all, fc.subarray([...names], { maxLength: 3 }))
    .map(([given, kept]) => Object.fromEntries(Object.entries(given).filter(([name]) => kept.includes(name))));

const arbitraryFlowrule = (of: 4 | 6) =>
  fc.record({
    dst: fc.constantFrom(...texts[of].dst),
    action: fc.constant('discard'),
    components: some(
      fc.record({
        'source-prefix': fc.constantFrom(...texts[of].src),
        protocol: fc.constantFrom('6', '17', '6,17', '47', of === 4 ? '1' : '58'),
        'source-port': portText,
        'destination-port': portText,
        port: portText,
        'icmp-type': fc.constantFrom('8', '3', '128'),
        'tcp-flags': fc.constantFrom('syn', 'syn&!ack', 'ack,rst', 'rst'),
        'packet-length': fc.constantFrom('468', '900-65535', '0-100', '40,1400'),
        fragment: fc.constantFrom('is-fragment', 'first-fragment', 'is-fragment,first-fragment', '!is-fragment'),
      }),
      [
        'source-prefix',
        'protocol',
        'source-port',
        'destination-port',
        'port',
        'icmp-type',
        'tcp-flags',
        'packet-length',
        'fragment',
      ],
    ),
  });

const arbitraryAccept = (of: 4 | 6) =>
  fc
    .tuple(
      fc.record({
        dst: fc.constantFrom(...texts[of].dst),
        protocol: fc.constantFrom('any', 'tcp', 'udp', 'tcp', 'udp', 'gre', 'mptcp', of === 4 ? 'icmp' : 'ipv6-icmp'),
        action: fc.constant('accept'),
      }),
      some(
        fc.record({
          src: fc.constantFrom(...texts[of].src).map((start) => ({ start })),
          port: fc
            .constantFrom<'src' | 'dst'>('src', 'dst')
            .chain((side) => port.map((start) => ({ [side]: { start, end: start + 200 } }))),
          tcpflags: fc.constantFrom(['syn'], ['ack'], ['rst', 'ack']),
          packetlength: length,
        }),
        ['src', 'port', 'tcpflags', 'packetlength'],
      ),
    )
    .map(([first, rest]) => ({ ...first, ...rest }));

const drawn = family.chain((of) =>
  fc.tuple(arbitraryFlowrule(of), arbitraryAccept(of), fc.array(arbitraryPacket(of), { minLength: 20, maxLength: 20 })),
);

test('a flowrule that any packet would meet which a rule accepts is known to be in its way', () => {
  let met = 0;
  let apart = 0;
  fc.assert(
    fc.property(drawn, ([wireFlowrule, wireRule, packets]) => {
      const flow = parseFlowrule(wireFlowrule);
      const parsed = parseRule(wireRule, { uuid: '0190a000-0000-7000-8000-000000000001', sequence: 1 });
      if (!flow.ok || !parsed.ok) return;
      const { rule } = parsed;
      const overlaps = mayOverlap(matchOfFlowrule(flow.flowrule), matchOfRule(rule));
      assert.equal(heldByAccept(flow.flowrule, [rule]) !== undefined, overlaps);
      if (!overlaps) apart++;
      for (const packet of packets) {
        const accepted = evaluate([rule], packet).decidedBy === rule.uuid;
        if (!accepted || !flowruleMatches(flow.flowrule, packet)) continue;
        met++;
        assert.ok(overlaps);
      }
    }),
    { numRuns: 4000 },
  );
  assert.ok(met > 100 && apart > 300, `${met} packets were of both, ${apart} pairs apart`);
});

test('a piece of what a rule accepts whole counts as accepted', () => {
  const accept = (fields: object) => {
    const parsed = parseRule(
      { dst: '203.0.113.7', protocol: 'udp', action: 'accept', ...fields },
      { uuid: 'a', sequence: 1 },
    );
    assert.ok(parsed.ok);
    return matchOfRule(parsed.rule);
  };
  const flow = (components: object) => {
    const parsed = parseFlowrule({
      dst: '203.0.113.7',
      action: 'discard',
      components: { protocol: 'udp', ...components },
    });
    assert.ok(parsed.ok);
    return matchOfFlowrule(parsed.flowrule);
  };
  assert.equal(mayOverlap(flow({ fragment: 'is-fragment' }), accept({ port: { dst: { start: 443 } } })), true);
  assert.equal(mayOverlap(flow({ 'packet-length': '900-65535' }), accept({ packetlength: 4000 })), true);
  assert.equal(mayOverlap(flow({ 'packet-length': '900-65535' }), accept({ packetlength: 512 })), false);
});
