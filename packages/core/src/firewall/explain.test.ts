import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKindNamed } from '../filter/catalogue.ts';
import type { Filter } from '../filter/filter.ts';
import { parseFilter } from '../filter/parse-filter.ts';
import { explain, parsePacket } from './explain.ts';
import { parseRule } from './parse.ts';
import type { Rule } from './rule.ts';

const base = { dst: '203.0.113.7', src: '198.51.100.1', protocol: 'udp' };
const base6 = { dst: '2001:db8::7', src: '2001:db8:1::1', protocol: 'tcp' };

function rule(uuid: string, wire: object): Rule {
  const parsed = parseRule({ dst: '203.0.113.7', protocol: 'any', action: 'drop', ...wire }, { uuid, sequence: 1 });
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.rule;
}

function packet(wire: object) {
  const parsed = parsePacket(wire);
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.packet;
}

test('the least that a request may give: a host frame, no fragment, the rest not known', () => {
  assert.deepEqual(packet(base), {
    family: 4,
    source: 0xc6336401n,
    destination: 0xcb007107n,
    upperProtocol: 17,
    extensionHeaders: [],
    packetType: 'host',
  });
});

test('everything that a request may give arrives in the packet', () => {
  const given = {
    ...base6,
    port: { src: 1024, dst: 443 },
    packetlength: 60,
    tcpflags: ['syn', 'ack'],
    packettype: 'multicast',
    statetype: 'established',
    payload: '/wABAg==',
  };
  assert.deepEqual(packet(given), {
    family: 6,
    source: 0x20010db8000100000000000000000001n,
    destination: 0x20010db8000000000000000000000007n,
    upperProtocol: 6,
    extensionHeaders: [],
    tcpOptionKinds: [],
    sourcePort: 1024,
    destinationPort: 443,
    totalLengthBytes: 60,
    tcpFlags: 0x12,
    packetType: 'multicast',
    connectionState: 'established',
    payload: Uint8Array.of(0xff, 0, 1, 2),
  });
});

for (const [what, wire, facts] of [
  [
    'mptcp is tcp with option 30',
    { ...base, protocol: 'mptcp' },
    { upperProtocol: 6, extensionHeaders: [], tcpOptionKinds: [30] },
  ],
  ['any leaves the protocol open', { ...base, protocol: 'any' }, { upperProtocol: undefined, extensionHeaders: [] }],
  ['hopopt is a header in IPv6', { ...base6, protocol: 'hopopt' }, { upperProtocol: undefined, extensionHeaders: [0] }],
  ['hopopt is number 0 in IPv4', { ...base, protocol: 'hopopt' }, { upperProtocol: 0, extensionHeaders: [] }],
  ['ah ends the headers', { ...base6, protocol: 'ah' }, { upperProtocol: 51, extensionHeaders: [] }],
  ['an ICMP message has a type and a code', { ...base, protocol: 'icmp', icmp: { type: 8 } }, { icmpType: 8 }],
  ['no flags is a known fact', { ...base, protocol: 'tcp', tcpflags: [] }, { tcpFlags: 0 }],
  ['one port may be left out', { ...base, port: { dst: 53 } }, { sourcePort: undefined, destinationPort: 53 }],
] as const) {
  test(what, () => {
    const read: Readonly<Record<string, unknown>> = { ...packet(wire) };
    for (const [name, expected] of Object.entries(facts)) assert.deepEqual(read[name], expected, name);
  });
}

for (const [wire, field, code] of [
  [{ ...base, dst: '203.0.113.0/24' }, '/dst', 'invalid_address'],
  [{ src: '198.51.100.1', protocol: 'udp' }, '/dst', 'required'],
  [{ dst: '203.0.113.7', protocol: 'udp' }, '/src', 'required'],
  [{ dst: '203.0.113.7', src: '198.51.100.1' }, '/protocol', 'required'],
  [{ ...base, src: '2001:db8::1' }, '/src', 'mixed_families'],
  [{ ...base, protocol: 'ipv6-icmp' }, '/protocol', 'protocol_family'],
  [{ ...base6, protocol: 'ip' }, '/protocol', 'protocol_family'],
  [{ ...base, port: { dst: { start: 53 } } }, '/port/dst', 'wrong_type'],
  [{ ...base, protocol: 'icmp', port: { dst: 53 } }, '/port', 'ports_without_transport'],
  [{ ...base, tcpflags: ['syn'] }, '/tcpflags', 'tcpflags_without_tcp'],
  [{ ...base, icmp: { type: 8 } }, '/icmp', 'icmp_without_icmp'],
  [{ ...base, protocol: 'icmp', icmp: { type: 256 } }, '/icmp/type', 'out_of_range'],
  [{ ...base, protocol: 'icmp', icmp: { kind: 8 } }, '/icmp/kind', 'unknown_field'],
  [{ ...base, packetlength: 0 }, '/packetlength', 'out_of_range'],
  [{ ...base, payload: 'abc' }, '/payload', 'not_allowed'],
  [{ ...base, payload: 'ab c=' }, '/payload', 'not_allowed'],
  [{ ...base, payload: 7 }, '/payload', 'wrong_type'],
  [{ ...base, ttl: 64 }, '/ttl', 'unknown_field'],
] as const) {
  test(`${JSON.stringify(wire)} is refused: ${field} ${code}`, () => {
    const parsed = parsePacket(wire);
    assert.ok(!parsed.ok);
    assert.deepEqual(
      parsed.problems.map((problem) => [problem.field, problem.code]),
      [[field, code]],
    );
  });
}

/** [rule, packet, code, sentence] */
const sentences: readonly (readonly [object, object, string, string])[] = [
  [{ disabled: true }, base, 'disabled', 'the rule is disabled'],
  [{ protocol: 'tcp' }, base, 'protocol', 'protocol is udp, rule wants tcp'],
  [{ protocol: 'tcp' }, { ...base, protocol: 'any' }, 'protocol_unknown', 'protocol is not given, rule wants tcp'],
  [{ src: { start: '10.0.0.0/8' } }, base, 'source', 'source is 198.51.100.1, rule wants 10.0.0.0/8'],
  [
    { src: { start: '10.0.0.1', end: '10.0.0.3' } },
    base,
    'source',
    'source is 198.51.100.1, rule wants 10.0.0.1 to 10.0.0.3',
  ],
  [{ packettype: 'other' }, base, 'packet_type', 'packet type is host, rule wants other'],
  [
    { port: { dst: { start: 53 } } },
    { ...base, port: { dst: 80 } },
    'destination_port',
    'destination port is 80, rule wants 53',
  ],
  [
    { port: { src: { start: 1, end: 9 } } },
    { ...base, port: { src: 80 } },
    'source_port',
    'source port is 80, rule wants 1 to 9',
  ],
  [{ port: { src: { start: 1 } } }, base, 'source_port_unknown', 'source port is not given, rule wants 1'],
  [{ port: { dst: { start: 1 } } }, base, 'destination_port_unknown', 'destination port is not given, rule wants 1'],
  [
    { port: { dst: { start: 1 } } },
    { ...base, protocol: 'gre' },
    'protocol_without_ports',
    'protocol is gre, which has no ports; rule wants ports of tcp, udp, udplite, sctp, dccp',
  ],
  [
    { port: { dst: { start: 1 } } },
    { ...base, protocol: 'any' },
    'protocol_unknown',
    'protocol is not given, rule wants ports of tcp, udp, udplite, sctp, dccp',
  ],
  [
    { protocol: 'tcp', tcpflags: ['syn', 'ack'] },
    { ...base, protocol: 'tcp', tcpflags: ['rst'] },
    'tcp_flags',
    'tcp flags are rst, rule wants syn+ack set',
  ],
  [
    { protocol: 'tcp', tcpflags: ['syn'] },
    { ...base, protocol: 'tcp', tcpflags: [] },
    'tcp_flags',
    'tcp flags are none, rule wants syn set',
  ],
  [
    { protocol: 'tcp', tcpflags: ['syn'] },
    { ...base, protocol: 'tcp' },
    'tcp_flags_unknown',
    'tcp flags are not given, rule wants syn set',
  ],
  [
    { protocol: 'mptcp' },
    { ...base, protocol: 'tcp' },
    'mptcp_option_absent',
    'packet is tcp without option 30, rule wants mptcp',
  ],
  [{ packetlength: 60 }, { ...base, packetlength: 61 }, 'packet_length', 'packet length is 61, rule wants 60'],
  [{ packetlength: 60 }, base, 'packet_length_unknown', 'packet length is not given, rule wants 60'],
  [
    { statetype: 'new' },
    { ...base, statetype: 'invalid' },
    'connection_state',
    'connection state is invalid, rule wants new',
  ],
  [{ statetype: 'new' }, base, 'connection_state_unknown', 'connection state is not given, rule wants new'],
  [
    { dst: '2001:db8::/64', protocol: 'ipv6-frag' },
    base6,
    'extension_header_absent',
    'packet has no extension header ipv6-frag, rule wants one',
  ],
  [{ action: 'accept' }, base, 'accepted', 'the packet matches and is accepted'],
  [{ action: 'drop' }, base, 'dropped', 'the packet matches and is dropped'],
  [{ action: 'reject' }, base, 'rejected', 'the packet matches and is rejected, with an answer to its sender'],
  [{ action: 'continue' }, base, 'counted', 'the packet matches, is counted and goes on'],
  [
    { action: 'accept', ratelimit: 100 },
    base,
    'accepted',
    'the packet matches and is accepted within the limit of 100 packets/s (burst 10); what exceeds it is dropped',
  ],
  [
    { action: 'drop', ratelimit: 9 },
    base,
    'passed_within_limit',
    'the packet matches and goes on within the limit of 9 packets/s; what exceeds it is dropped',
  ],
  [
    { action: 'reject', ratelimit: 9 },
    base,
    'passed_within_limit',
    'the packet matches and goes on within the limit of 9 packets/s; what exceeds it is rejected',
  ],
];

for (const [wire, request, code, message] of sentences) {
  test(`the trail says "${message}"`, () => {
    const { trail } = explain([rule('r', wire)], packet(request));
    assert.deepEqual(
      trail.map((entry) => [entry.code, entry.message]),
      [[code, message]],
    );
  });
}

test('the answer names the verdict, the rule that decided and every covering rule passed on the way', () => {
  const rules = [
    rule('other-destination', { dst: '203.0.113.8', priority: 1 }),
    rule('wide', { dst: '203.0.113.0/24', protocol: 'tcp', priority: 2 }),
    rule('decides', { protocol: 'udp', action: 'reject', priority: 3 }),
    rule('never-reached', { priority: 4 }),
  ];
  assert.deepEqual(explain(rules, packet(base)), {
    verdict: 'reject',
    decided_by: 'decides',
    trail: [
      {
        uuid: 'wide',
        priority: 2,
        action: 'drop',
        matched: false,
        code: 'protocol',
        message: 'protocol is udp, rule wants tcp',
      },
      {
        uuid: 'decides',
        priority: 3,
        action: 'reject',
        matched: true,
        code: 'rejected',
        message: 'the packet matches and is rejected, with an answer to its sender',
      },
    ],
  });
  assert.deepEqual(explain([], packet(base)), { verdict: 'accept', decided_by: 'default', trail: [] });
});

test('of a rule that the caller may not read, nothing is told but that it was passed or decided', () => {
  const rules = [
    rule('mine', { action: 'continue', priority: 1 }),
    rule('theirs', { packetlength: 4242, priority: 2 }),
  ];
  const passed = explain(rules, packet(base), (of) => of.uuid === 'mine');
  assert.equal(passed.decided_by, 'default');
  const decided = explain(rules, packet({ ...base, packetlength: 4242 }), (of) => of.uuid === 'mine');
  assert.equal(decided.decided_by, 'other');
  assert.equal(decided.verdict, 'drop');
  for (const { trail } of [passed, decided]) assert.doesNotMatch(JSON.stringify(trail), /theirs|4242|length/);
});

function filter(uuid: string, wire: object, name = 'dns'): Filter {
  const id = filterKindNamed(name)?.id;
  const parsed = parseFilter({ dst: '203.0.113.7', filter: id, ...wire }, { uuid, sequence: 1 });
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.filter;
}

/** A DNS question, and an answer to one. */
const question = Buffer.from('4d3101000001000000000000076578616d706c6503636f6d0000010001', 'hex').toString('base64');
const answer = Buffer.from('4d3181800001000000000000076578616d706c6503636f6d0000010001', 'hex').toString('base64');
const asked = { ...base, port: { src: 40000, dst: 53 }, payload: question };

/** [filter, packet, code, sentence, verdict] */
const filterSentences: readonly (readonly [object, object, string, string, string])[] = [
  [{}, asked, 'passed', 'the packet passes: a DNS question', 'accept'],
  [
    { ratelimit: 20 },
    asked,
    'passed',
    'the packet passes: a DNS question; of what passes, what exceeds 20 Mbit/s is dropped',
    'accept',
  ],
  [{}, { ...asked, payload: answer }, 'discarded', 'the packet is dropped: an answer, not a question', 'drop'],
  [
    {},
    { ...asked, payload: undefined },
    'undecided',
    'the packet goes on, too little of it is given: the payload decides',
    'accept',
  ],
  [{}, { ...asked, protocol: 'tcp' }, 'protocol', 'protocol is tcp, filter looks at udp', 'accept'],
  [{}, { ...asked, protocol: 'any' }, 'protocol_unknown', 'protocol is not given, filter looks at udp', 'accept'],
  [{ src: { start: '10.0.0.0/8' } }, asked, 'source', 'source is 198.51.100.1, filter looks at 10.0.0.0/8', 'accept'],
  [{}, { ...asked, port: { dst: 54 } }, 'destination_port', 'destination port is 54, filter looks at 53', 'accept'],
  [
    { port: { dst: { start: 5300, end: 5400 } } },
    { ...asked, port: { dst: 53 } },
    'destination_port',
    'destination port is 53, filter looks at 5300 to 5400',
    'accept',
  ],
  [
    {},
    { ...asked, port: {} },
    'destination_port_unknown',
    'destination port is not given, filter looks at 53',
    'accept',
  ],
  [
    { port: { src: { start: 1024, end: 65535 } } },
    { ...asked, port: { src: 53, dst: 53 } },
    'source_port',
    'source port is 53, filter looks at 1024 to 65535',
    'accept',
  ],
  [
    {},
    { ...asked, packettype: 'broadcast' },
    'packet_type',
    'packet type is broadcast, filter looks at host',
    'accept',
  ],
];

for (const [wire, request, code, message, verdict] of filterSentences) {
  test(`the trail says of a filter "${message}"`, () => {
    const present = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
    const explained = explain([filter('f', wire)], packet(present));
    assert.deepEqual(explained, {
      verdict,
      decided_by: verdict === 'drop' ? 'f' : 'default',
      trail: [
        { uuid: 'f', priority: 1000, filter: 22, kind: 'dns', matched: !/_|source|protocol/.test(code), code, message },
      ],
    });
  });
}

test('filters are told of behind all rules, and of none where a rule accepted', () => {
  const entries = [
    filter('late', { priority: 2 }),
    filter('early', { priority: 1 }),
    rule('counts', { action: 'continue', priority: 9 }),
  ];
  const order = (explained: ReturnType<typeof explain>) =>
    explained.trail.map((entry) => ('uuid' in entry ? entry.uuid : entry.code));
  assert.deepEqual(order(explain(entries, packet(asked))), ['counts', 'early', 'late']);
  const accepted = explain([...entries, rule('accepts', { action: 'accept', priority: 10 })], packet(asked));
  assert.deepEqual(order(accepted), ['counts', 'accepts']);
  const discarded = explain(entries, packet({ ...asked, payload: answer }));
  assert.deepEqual([order(discarded), discarded.decided_by], [['counts', 'early'], 'early']);
});

test('of a filter that the caller may not read, nothing is told but that it was passed or decided', () => {
  const { decided_by, trail, verdict } = explain(
    [filter('theirs', {})],
    packet({ ...asked, payload: answer }),
    () => false,
  );
  assert.deepEqual([verdict, decided_by], ['drop', 'other']);
  assert.deepEqual(trail, [{ matched: true, code: 'other', message: 'a filter that is not yours to read' }]);
});

test('a rule that lets SYNs past a SYN proxy, but not what follows, is said to let no connection come about', () => {
  const proxy = filter('proxy', {}, 'tcp-syn-protect');
  const syn = packet({ ...base, protocol: 'tcp', port: { src: 40_000, dst: 80 }, tcpflags: ['syn'], statetype: 'new' });
  const last = (...rules: Rule[]) => explain([proxy, ...rules], syn).trail.at(-1);
  const alone = rule('alone', { protocol: 'tcp', action: 'accept', tcpflags: ['syn'], ratelimit: 100 });
  assert.equal(
    last(alone)?.message,
    'the packet matches and is accepted within the limit of 100 packets/s (burst 10); what exceeds it is dropped; the ACK ' +
      'that ends its handshake goes to filter proxy, which did not answer the SYN: no connection comes about',
  );
  const all = rule('all', { protocol: 'tcp', action: 'accept', statetype: 'new' });
  assert.equal(last(all)?.message, 'the packet matches and is accepted');
});
