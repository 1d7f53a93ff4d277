import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ProtocolName, protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import { familyOfProtocol } from '../firewall/protocol-traits.ts';
import type { Rule } from '../firewall/rule.ts';
import type { Family } from '../net/prefix.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { rangeOfPrefix } from '../net/range.ts';
import { createCompiler } from './compiler.ts';
import { prefixChain, prefixKey, ruleDigits } from './names.ts';
import { canMatch, endsEvaluation, ownChains, ruleLine } from './rule-text.ts';
import { kernelObstacle, TestNamespace } from './testing/kernel-table.ts';
import { ruleUuid } from './testing/random-rules.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '0'.repeat(16);
const digits = '0190a0000000700080000000000000ab';
const dst: Record<Family, string> = { 4: '203.0.113.7', 6: '2001:db8::7' };

interface Case {
  readonly title: string;
  readonly family?: Family;
  readonly fields: Partial<Rule>;
  /** What the compiler writes. */
  readonly line: string;
  /** What nft says it read (`nft -nn -s`), where it puts the same in other words. */
  readonly listed?: string;
  readonly own?: Readonly<Record<string, readonly string[]>>;
}

function src(text: string) {
  return rangeOfPrefix(prefixFromTrusted(text));
}

function between(first: string, last: string) {
  return { ...src(first), end: src(last).end };
}

const port = (start: number, end = start) => ({ start, end });

const cases: readonly Case[] = [
  { title: 'no condition', fields: {}, line: 'counter drop' },
  { title: 'accept', fields: { action: 'accept' }, line: 'counter accept' },
  { title: 'continue', fields: { action: 'continue' }, line: 'counter' },
  { title: 'reject', fields: { action: 'reject' }, line: 'counter jump refuse' },
  { title: 'a protocol', fields: { protocol: 'icmp' }, line: 'meta l4proto 1 counter drop' },
  {
    title: 'a destination port',
    fields: { protocol: 'tcp', destinationPorts: port(443) },
    line: 'meta l4proto 6 @th,8,24 & 0xffff == 443 counter drop',
    listed: 'tcp dport 443 counter drop',
  },
  {
    title: 'both ports',
    fields: { protocol: 'udp', sourcePorts: port(1, 1023), destinationPorts: port(0, 65535) },
    line: 'meta l4proto 17 @th,0,24 0x100-0x3ffff @th,8,24 & 0xffff 0-65535 counter drop',
    listed: '@th,0,24 0x100-0x3ffff udp dport 0-65535 counter drop',
  },
  {
    title: 'ports of any protocol',
    fields: { sourcePorts: port(0) },
    line: 'meta l4proto @with_ports @th,0,24 & 0xffff00 == 0x0 counter drop',
  },
  {
    title: 'mptcp',
    fields: { protocol: 'mptcp' },
    line: 'meta l4proto 6 tcp option 30 exists counter drop',
    listed: 'tcp option mptcp 1 counter drop',
  },
  { title: 'one source', fields: { src: src('192.0.2.1') }, line: '@nh,96,32 0xc0000201 counter drop' },
  {
    title: 'a source prefix on an octet',
    fields: { src: src('10.0.0.0/8') },
    line: '@nh,96,8 0xa counter drop',
  },
  {
    title: 'a source prefix within an octet',
    fields: { src: src('192.0.2.128/25') },
    line: '@nh,96,32 0xc0000280-0xc00002ff counter drop',
  },
  {
    title: 'a source range',
    fields: { src: between('0.0.0.0', '192.0.2.9') },
    line: '@nh,96,32 0x0-0xc0000209 counter drop',
  },
  { title: 'every source', fields: { src: src('0.0.0.0/0') }, line: 'counter drop' },
  {
    title: 'one IPv6 source',
    family: 6,
    fields: { src: src('2001:db8::1') },
    line: '@nh,64,128 0x20010db8000000000000000000000001 counter drop',
  },
  {
    title: 'an IPv6 source prefix',
    family: 6,
    fields: { src: src('2001:db8::/48') },
    line: '@nh,64,48 0x20010db80000 counter drop',
  },
  {
    title: 'an IPv6 source range',
    family: 6,
    fields: { src: between('::1', '2001:db8::ffff') },
    line: '@nh,64,128 0x1-0x20010db800000000000000000000ffff counter drop',
  },
  {
    title: 'flags',
    fields: { protocol: 'tcp', tcpFlags: 0x12 },
    line: 'meta l4proto 6 @th,88,24 & 18 == 18 counter drop',
    listed: 'meta l4proto 6 @th,88,24 & 0x12 == 0x12 counter drop',
  },
  {
    title: 'all flags',
    fields: { protocol: 'tcp', tcpFlags: 0xff },
    line: 'meta l4proto 6 @th,88,24 & 255 == 255 counter drop',
    listed: 'tcp flags == 0xff counter drop',
  },
  {
    title: 'a length',
    fields: { packetLengthBytes: 65535 },
    line: '@nh,16,16 65535 counter drop',
    listed: '@nh,16,16 0xffff counter drop',
  },
  {
    title: 'an IPv6 length, less its header',
    family: 6,
    fields: { packetLengthBytes: 40 },
    line: '@nh,32,16 0 counter drop',
    listed: '@nh,32,16 0x0 counter drop',
  },
  { title: 'packets to this host', fields: { packetType: 'host' }, line: 'meta pkttype 0 counter drop' },
  {
    title: 'new',
    fields: { connectionState: 'new' },
    line: 'ct state 72 counter drop',
    listed: 'ct state 0x8,0x40 counter drop',
  },
  {
    title: 'established',
    fields: { connectionState: 'established' },
    line: 'ct state 2 counter drop',
    listed: 'ct state 0x2 counter drop',
  },
  {
    title: 'related',
    fields: { connectionState: 'related' },
    line: 'ct state 4 counter drop',
    listed: 'ct state 0x4 counter drop',
  },
  {
    title: 'invalid',
    fields: { connectionState: 'invalid' },
    line: 'ct state 1 counter drop',
    listed: 'ct state 0x1 counter drop',
  },
  {
    title: 'a limited drop',
    fields: { protocol: 'udp', rateLimitPacketsPerSecond: 1 },
    line: `meta l4proto 17 counter jump limit_${digits}`,
    own: { limit: ['limit rate over 1/second burst 5 packets drop'] },
  },
  {
    title: 'a limited continue',
    fields: { action: 'continue', rateLimitPacketsPerSecond: 1000 },
    line: `counter jump limit_${digits}`,
    own: { limit: ['limit rate over 1000/second burst 100 packets drop'] },
  },
  {
    title: 'a limited accept, at the highest limit',
    fields: { action: 'accept', rateLimitPacketsPerSecond: 4294967295 },
    line: `counter jump limit_${digits}`,
    own: { limit: ['limit rate over 4294967295/second burst 429496730 packets drop', 'accept'] },
  },
  {
    title: 'a limited reject',
    fields: { action: 'reject', rateLimitPacketsPerSecond: 50 },
    line: `counter jump limit_${digits}`,
    own: {
      limit: [
        'limit rate 50/second burst 5 packets return',
        'meta pkttype 0 limit rate 50/second burst 5 packets jump refuse',
        'drop',
      ],
    },
  },
  {
    title: 'hop-by-hop options',
    family: 6,
    fields: { protocol: 'hopopt' },
    line: 'exthdr hbh exists counter drop',
    listed: 'exthdr hbh 1 counter drop',
  },
  {
    title: 'a routing header',
    family: 6,
    fields: { protocol: 'ipv6-route' },
    line: 'exthdr rt exists counter drop',
    listed: 'exthdr rt 1 counter drop',
  },
  {
    title: 'destination options',
    family: 6,
    fields: { protocol: 'ipv6-opts' },
    line: 'exthdr dst exists counter drop',
    listed: 'exthdr dst 1 counter drop',
  },
  {
    title: 'a mobility header',
    family: 6,
    fields: { protocol: 'mobility-header' },
    line: 'meta l4proto 135 counter drop',
    listed: 'meta l4proto 135 counter drop',
  },
  {
    title: 'a fragment header, or the mark of packets put together',
    family: 6,
    fields: { protocol: 'ipv6-frag', rateLimitPacketsPerSecond: 10, src: src('::/8') },
    line: `@nh,64,8 0x0 jump either_${digits}`,
    own: {
      either: [
        `exthdr frag exists goto verdict_${digits}`,
        `meta mark & 134217728 == 134217728 goto verdict_${digits}`,
      ],
      verdict: [`counter jump limit_${digits}`],
      limit: ['limit rate over 10/second burst 5 packets drop'],
    },
  },
  {
    title: 'an authentication header, wherever it stands',
    family: 6,
    fields: { protocol: 'ah', action: 'accept' },
    line: `jump either_${digits}`,
    own: {
      either: [`meta l4proto 51 goto verdict_${digits}`, `frag frag-off != 0 frag nexthdr 51 goto verdict_${digits}`],
      verdict: ['counter accept'],
    },
  },
  {
    title: 'an authentication header of IPv4',
    fields: { protocol: 'ah' },
    line: 'meta l4proto 51 counter drop',
  },
];

function ruleOf({ family = 4, fields }: Case): Rule {
  return { ...testRule(0xab, dst[family], fields), uuid: ruleUuid(0xab) };
}

describe('the text of a rule', () => {
  for (const example of cases) {
    it(`${example.title}: exactly this`, () => {
      const rule = ruleOf(example);
      assert.equal(ruleLine(rule, 'forward'), example.line);
      const own = Object.fromEntries(ownChains(rule).map(({ name, lines }) => [name, lines]));
      const parts = Object.entries(example.own ?? {});
      assert.deepEqual(own, Object.fromEntries(parts.map(([part, lines]) => [`${part}_${digits}`, lines])));
    });
  }
});

describe('what nft reads', { skip: kernelObstacle() ?? false }, () => {
  it('every construct is the one that was meant', () => {
    using namespace = new TestNamespace();
    for (const example of cases) {
      const rule = ruleOf(example);
      namespace.load(createCompiler().replace([rule], mark).text);
      const { chains } = namespace.content();
      assert.deepEqual(
        chains.get(prefixChain('c', prefixKey(rule.dst))),
        [example.listed ?? example.line],
        example.title,
      );
      for (const { name, lines } of ownChains(rule)) assert.deepEqual(chains.get(name), lines.map(asListed), name);
    }
  });

  it('every protocol word is its number, its extension header or no condition', () => {
    using namespace = new TestNamespace();
    const rules = protocolNames.flatMap((protocol, index) =>
      ([4, 6] as const)
        .filter((family) => (familyOfProtocol(protocol) ?? family) === family)
        .map((family) =>
          testRule(index * 8 + family, family === 4 ? `10.0.0.${index}` : `fd00::${index}`, { protocol }),
        ),
    );
    namespace.load(createCompiler().replace(rules, mark).text);
    const { chains } = namespace.content();
    for (const { protocol, dst: prefix, uuid } of rules) {
      const header = prefix.family === 6 ? headerLines[protocol]?.replace('UUID', ruleDigits(uuid)) : undefined;
      const number = protocolNumbers[protocol];
      const plain = number === null ? 'counter drop' : `meta l4proto ${number} counter drop`;
      const expected = protocol === 'mptcp' ? 'tcp option mptcp 1 counter drop' : (header ?? plain);
      assert.deepEqual(chains.get(prefixChain('c', prefixKey(prefix))), [expected], `${protocol} IPv${prefix.family}`);
    }
  });
});

const headerLines: Partial<Record<ProtocolName, string>> = {
  hopopt: 'exthdr hbh 1 counter drop',
  'ipv6-route': 'exthdr rt 1 counter drop',
  'ipv6-opts': 'exthdr dst 1 counter drop',
  ah: 'jump either_UUID',
  'ipv6-frag': 'jump either_UUID',
};

/** nft's own notation of some own chains' lines. */
function asListed(line: string): string {
  return line
    .replace(/ burst 5 packets/, '')
    .replace('exthdr frag exists', 'exthdr frag 1')
    .replaceAll('134217728', '0x08000000');
}

describe('which rules take part', () => {
  it('a disabled rule never does', () => {
    const rule = testRule(1, dst[4], { disabled: true });
    assert.deepEqual([canMatch(rule, 'forward'), canMatch(rule, 'ingress')], [false, false]);
  });

  it('an IPv6 packet is never shorter than its header', () => {
    assert.equal(canMatch(testRule(1, dst[6], { packetLengthBytes: 39 }), 'forward'), false);
    assert.equal(canMatch(testRule(1, dst[4], { packetLengthBytes: 39 }), 'forward'), true);
  });

  it('packets to other hardware are seen at ingress only, and have no state there', () => {
    const multicast = testRule(1, dst[4], { packetType: 'multicast' });
    assert.deepEqual([canMatch(multicast, 'forward'), canMatch(multicast, 'ingress')], [false, true]);
    const host = testRule(1, dst[4], { packetType: 'host' });
    assert.deepEqual([canMatch(host, 'forward'), canMatch(host, 'ingress')], [true, false]);
    assert.equal(canMatch({ ...multicast, connectionState: 'new' }, 'ingress'), false);
  });

  it('only a verdict without any condition ends evaluation', () => {
    const ends = (fields: Partial<Rule>) => endsEvaluation(testRule(1, dst[6], fields));
    assert.equal(ends({ action: 'accept' }), true);
    assert.equal(ends({ action: 'accept', rateLimitPacketsPerSecond: 1 }), true);
    assert.equal(ends({ action: 'drop', src: src('::/0') }), true);
    assert.equal(ends({ action: 'continue' }), false);
    assert.equal(ends({ action: 'drop', rateLimitPacketsPerSecond: 1 }), false);
    assert.equal(ends({ action: 'reject', rateLimitPacketsPerSecond: 1 }), false);
    for (const protocol of protocolNames) {
      if (protocol !== 'any') assert.equal(ends({ protocol }), protocol === 'ip', protocol);
    }
    assert.equal(ends({ destinationPorts: { start: 0, end: 65535 } }), false);
    assert.equal(ends({ packetType: 'host' }), false);
    assert.equal(ends({ connectionState: 'new' }), false);
  });
});
