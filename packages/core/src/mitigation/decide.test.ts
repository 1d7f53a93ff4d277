import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VectorProfile } from '@levee/contract/detector.ts';
import { defaultThresholds } from '../detection/policy.ts';
import type { Vector } from '../detection/vector.ts';
import { parseRule } from '../firewall/parse.ts';
import type { Rule } from '../firewall/rule.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { decideMeasures, type MitigationCase } from './decide.ts';
import type { Measures, Mitigation } from './measure.ts';
import { profileOf } from './testing/profile.ts';

const dst = '203.0.113.7';

/** Nothing of any vector is usual, and that is known. */
const unused = (vector: string) => ({ ...defaultThresholds[vector as Vector], baselinePps: 0, baselineBps: 0 });
const unknown = (vector: string) => defaultThresholds[vector as Vector];

function decide(
  profiles: readonly VectorProfile[],
  more: Partial<MitigationCase> & { mitigation?: Mitigation } = {},
): Measures {
  const { mitigation = 'flowspec', ...rest } = more;
  return decideMeasures({
    dst: prefixFromTrusted(dst),
    profiles,
    limitsOf: unused,
    policy: { mitigation, overrideAccept: false, allowBlackhole: mitigation === 'rtbh' },
    accepts: [],
    routesLeft: 1000,
    ...rest,
  });
}

/** `action rate component=value …`, each rule a line. */
function routes({ flowrules }: Measures): string[] {
  return flowrules.map(({ canonical: { dst, components, action, ratelimit } }) =>
    [dst, ...Object.entries(components).map(([name, text]) => `${name}=${text}`), '→', action, ratelimit]
      .filter((part) => part !== undefined)
      .join(' '),
  );
}

function rules({ edge }: Measures): string[] {
  return edge.map(({ canonical: { dst, priority, disabled, descr, action, ...fields } }) => {
    assert.equal(priority, 2147483648);
    assert.equal(disabled, false);
    return `${dst} ${JSON.stringify(fields)} → ${action}`;
  });
}

function acceptRule(fields: object): Rule {
  const parsed = parseRule(
    { dst, protocol: 'any', action: 'accept', ...fields },
    { uuid: '0190a000-0000-7000-8000-000000000001', sequence: 1 },
  );
  assert.ok(parsed.ok);
  return parsed.rule;
}

const one = <T>(value: T, share = 1) => ({ value, share });
const spread = Array.from({ length: 64 }, (_, index) => one(1024 + index * 7, 0.001));
const syn = profileOf('tcp-syn', { bps: 100_000 * 60 * 8, length: { min: 60, p5: 60, max: 60 }, tcp_flags: [one(2)] });

const golden: readonly [string, VectorProfile[], string[], string[]][] = [
  [
    'DNS answers',
    [
      profileOf('udp-amplification', {
        source_ports: [one(53, 0.98), one(123, 0.02)],
        length: { min: 1000, p5: 1100, max: 1500 },
      }),
    ],
    ['203.0.113.7 protocol=udp source-port=53 packet-length=900-65535 → discard'],
    ['203.0.113.7 {"protocol":"udp","port":{"src":{"start":53}},"statetype":"new"} → drop'],
  ],
  [
    'large DNS answers, in fragments',
    [
      profileOf('udp-amplification', { source_ports: [one(53)], length: { min: 1000, p5: 1100, max: 1500 } }),
      profileOf('ip-fragment', { pps: 90_000, protocols: [one(17)], later_fragments: 0.6 }),
    ],
    [
      '203.0.113.7 protocol=udp source-port=53 packet-length=900-65535 → discard',
      '203.0.113.7 protocol=udp fragment=is-fragment,first-fragment → discard',
    ],
    ['203.0.113.7 {"protocol":"udp","port":{"src":{"start":53}}} → drop'],
  ],
  [
    'DNS answers some of which are fragments',
    [
      profileOf('udp-amplification', {
        source_ports: [one(53)],
        length: { min: 1000, p5: 1100, max: 1500 },
        later_fragments: 0.05,
      }),
    ],
    [
      '203.0.113.7 protocol=udp source-port=53 packet-length=900-65535 → discard',
      '203.0.113.7 protocol=udp fragment=is-fragment → rate-limit 5000000',
    ],
    ['203.0.113.7 {"protocol":"udp","port":{"src":{"start":53}},"statetype":"new"} → drop'],
  ],
  [
    'answers of several services',
    [
      profileOf('udp-amplification', {
        source_ports: [one(123, 0.5), one(11211, 0.3), one(389, 0.15), one(53, 0.05)],
        length: { min: 468, p5: 468, max: 468 },
      }),
    ],
    ['203.0.113.7 protocol=udp source-port=123,389,11211 packet-length=421-65535 → discard'],
    [
      '203.0.113.7 {"protocol":"udp","port":{"src":{"start":123}},"packetlength":468,"statetype":"new"} → drop',
      '203.0.113.7 {"protocol":"udp","port":{"src":{"start":389}},"packetlength":468,"statetype":"new"} → drop',
      '203.0.113.7 {"protocol":"udp","port":{"src":{"start":11211}},"packetlength":468,"statetype":"new"} → drop',
    ],
  ],
  [
    'SYNs: limited to the threshold of 10 000 a second, 60 octets each',
    [syn],
    ['203.0.113.7 protocol=tcp tcp-flags=syn&!ack → rate-limit 600000'],
    ['203.0.113.7 {"protocol":"tcp","tcpflags":["syn"],"ratelimit":10000} → drop'],
  ],
  [
    'SYNs from one source are limited all the same',
    [{ ...syn, sources: [one('198.51.100.9')], distinct_sources: 1 }],
    ['203.0.113.7 protocol=tcp tcp-flags=syn&!ack → rate-limit 600000'],
    ['203.0.113.7 {"protocol":"tcp","tcpflags":["syn"],"ratelimit":10000} → drop'],
  ],
  [
    'SYN-ACKs',
    [profileOf('tcp-syn-ack', { tcp_flags: [one(18)] })],
    ['203.0.113.7 protocol=tcp tcp-flags=syn&ack → discard'],
    [
      '203.0.113.7 {"protocol":"tcp","tcpflags":["syn","ack"],"statetype":"invalid"} → drop',
      '203.0.113.7 {"protocol":"tcp","tcpflags":["syn","ack"],"statetype":"new"} → drop',
    ],
  ],
  [
    'ACKs are limited: every connection has them',
    [profileOf('tcp-ack', { bps: 100_000 * 40 * 8, tcp_flags: [one(16)] })],
    ['203.0.113.7 protocol=tcp tcp-flags=!syn&!rst&ack → rate-limit 4000000'],
    [
      '203.0.113.7 {"protocol":"tcp","tcpflags":["ack"],"statetype":"invalid"} → drop',
      '203.0.113.7 {"protocol":"tcp","tcpflags":["ack"],"ratelimit":500,"statetype":"new"} → drop',
    ],
  ],
  [
    'ACKs that say they are from two machines',
    [profileOf('tcp-ack', { sources: [one('198.51.100.9', 0.6), one('198.51.100.8', 0.39)], distinct_sources: 4 })],
    ['203.0.113.7 protocol=tcp tcp-flags=!syn&!rst&ack → rate-limit 50000000'],
    [
      '203.0.113.7 {"protocol":"tcp","tcpflags":["ack"],"statetype":"invalid"} → drop',
      '203.0.113.7 {"protocol":"tcp","tcpflags":["ack"],"ratelimit":500,"statetype":"new"} → drop',
    ],
  ],
  [
    'RSTs',
    [profileOf('tcp-rst', { tcp_flags: [one(4)] })],
    ['203.0.113.7 protocol=tcp tcp-flags=!syn&rst → discard'],
    [
      '203.0.113.7 {"protocol":"tcp","tcpflags":["rst"],"statetype":"invalid"} → drop',
      '203.0.113.7 {"protocol":"tcp","tcpflags":["rst"],"statetype":"new"} → drop',
    ],
  ],
  [
    'flags of no connection',
    [profileOf('tcp-other', { tcp_flags: [one(0, 0.5), one(3, 0.5)] })],
    ['203.0.113.7 protocol=tcp tcp-flags=!syn&!rst&!ack,fin&syn&!ack,syn&rst&!ack → discard'],
    [
      '203.0.113.7 {"protocol":"tcp","tcpflags":["fin","syn"]} → drop',
      '203.0.113.7 {"protocol":"tcp","tcpflags":["syn","rst"]} → drop',
      '203.0.113.7 {"protocol":"tcp","statetype":"invalid"} → drop',
    ],
  ],
  [
    'echo requests',
    [profileOf('icmp', { icmp: [one(8 * 256)] })],
    ['203.0.113.7 protocol=icmp icmp-type=8 → discard'],
    ['203.0.113.7 {"protocol":"icmp","ratelimit":5000} → drop'],
  ],
  [
    'unreachables are limited: one of them tells of a path',
    [profileOf('icmp', { icmp: [one(3 * 256 + 3)] })],
    ['203.0.113.7 protocol=icmp icmp-type=3 → rate-limit 2500000'],
    ['203.0.113.7 {"protocol":"icmp","ratelimit":5000} → drop'],
  ],
  ['GRE', [profileOf('gre')], ['203.0.113.7 protocol=gre → discard'], ['203.0.113.7 {"protocol":"gre"} → drop']],
  ['ESP', [profileOf('esp')], ['203.0.113.7 protocol=esp → discard'], ['203.0.113.7 {"protocol":"esp"} → drop']],
  [
    'later fragments',
    [profileOf('ip-fragment', { protocols: [one(17)], later_fragments: 0.95 })],
    ['203.0.113.7 protocol=udp fragment=is-fragment → discard'],
    [],
  ],
  [
    'UDP of one length to one port',
    [
      profileOf('udp-other', {
        destination_ports: [one(27015)],
        source_ports: spread,
        length: { min: 61, p5: 61, max: 61 },
      }),
    ],
    ['203.0.113.7 protocol=udp destination-port=27015 packet-length=61 → discard'],
    ['203.0.113.7 {"protocol":"udp","port":{"dst":{"start":27015}},"packetlength":61} → drop'],
  ],
  [
    'UDP of any length to one port: it is a service, and limited',
    [profileOf('udp-other', { destination_ports: [one(443)], source_ports: spread })],
    ['203.0.113.7 protocol=udp destination-port=443 → rate-limit 25000000'],
    ['203.0.113.7 {"protocol":"udp","port":{"dst":{"start":443}},"ratelimit":50000} → drop'],
  ],
  [
    'UDP of all kinds',
    [profileOf('udp-other', { destination_ports: spread, source_ports: spread })],
    ['203.0.113.7 protocol=udp → rate-limit 25000000'],
    ['203.0.113.7 {"protocol":"udp","ratelimit":50000} → drop'],
  ],
  [
    'other protocols, one without a word',
    [profileOf('ip-other', { protocols: [one(132, 0.6), one(253, 0.4)] })],
    ['203.0.113.7 protocol=sctp,253 → discard'],
    ['203.0.113.7 {"protocol":"sctp"} → drop'],
  ],
  [
    'everything together',
    [profileOf('total', { bps: 100_000 * 500 * 8 })],
    ['203.0.113.7 → rate-limit 100000000'],
    ['203.0.113.7 {"protocol":"any","ratelimit":200000} → drop'],
  ],
];

for (const [name, profiles, flowspec, edge] of golden) {
  test(`measures against ${name}`, () => {
    const measures = decide(profiles);
    assert.deepEqual(routes(measures), flowspec);
    assert.deepEqual(rules(measures), edge);
    assert.ok(measures.flowrules.every(({ held }) => held === undefined));
    for (const { vector } of profiles)
      assert.ok((measures.coverage[vector] ?? 0) >= 0.9, JSON.stringify(measures.coverage));
  });
}

test('in IPv6 it is ICMPv6 that is matched, and packets that find neighbours arrive', () => {
  const v6 = { dst: prefixFromTrusted('2001:db8::7') };
  const pings = decide([profileOf('icmp', { icmp: [one(128 * 256)] })], v6);
  assert.deepEqual(routes(pings), ['2001:db8::7 protocol=ipv6-icmp icmp-type=128 → discard']);
  const neighbours = decide([profileOf('icmp', { icmp: [one(135 * 256)] })], v6);
  assert.equal(neighbours.flowrules[0]?.canonical.action, 'rate-limit');
  assert.deepEqual(rules(decide([profileOf('ip-fragment')], v6)), [
    '2001:db8::7 {"protocol":"ipv6-frag","ratelimit":10000} → drop',
  ]);
});

test('what a destination may have a use for is limited by as precise a match; only what is known to be unused is discarded', () => {
  const harmless = ['DNS answers', 'answers of several services', 'flags of no connection'];
  for (const [name, profiles, flowspec, edge] of golden) {
    const matchOnly = (lines: readonly string[]) => lines.map((line) => line.replace(/ →.*/, ''));
    const edgeOnly = (lines: readonly string[]) => lines.map((line) => line.replace(/,?"ratelimit":\d+/g, ''));
    const measures = decide(profiles, { limitsOf: unknown });
    assert.deepEqual(matchOnly(routes(measures)), matchOnly(flowspec), name);
    assert.deepEqual(edgeOnly(rules(measures)), edgeOnly(edgeOnly(edge)), name);
    const discarded = measures.flowrules.filter(({ canonical: { action } }) => action === 'discard');
    for (const { canonical, purpose } of discarded) {
      const isLong = canonical.components['packet-length'] !== undefined && purpose === 'udp-amplification:ports';
      assert.ok(isLong || purpose === 'tcp-other:flags', `${name}: ${purpose}`);
    }
    if (harmless.includes(name)) assert.deepEqual(routes(measures), flowspec);
    for (const { canonical } of measures.edge) {
      const { ratelimit, statetype, packetlength = 0, tcpflags } = canonical;
      const isImpossible = tcpflags?.includes('syn') && tcpflags.length === 2;
      assert.ok(ratelimit !== undefined || statetype || packetlength > 400 || isImpossible, JSON.stringify(canonical));
    }
  }
});

test('a resolver keeps its answers: their length decides, and where it does not tell, they are limited', () => {
  const answers = (length: VectorProfile['length'], port = 53) =>
    profileOf('udp-amplification', { source_ports: [one(port, 0.97), one(389, 0.03)], length });
  const busy = { limitsOf: () => ({ pps: 10_000, baselinePps: 9_000, baselineBps: 9_000 * 8 * 200 }) };
  for (const more of [busy, { limitsOf: unknown }]) {
    assert.deepEqual(
      routes(decide([answers({ min: 70, p5: 1200, max: 1500 })], more)),
      ['203.0.113.7 protocol=udp source-port=53 packet-length=1080-65535 → discard'],
      'one short answer among them',
    );
    assert.match(
      routes(decide([answers({ min: 70, p5: 90, max: 1500 })], more))[0] ?? '',
      /source-port=53 packet-length=81-65535 → rate-limit/,
    );
    assert.match(routes(decide([answers({ min: 468, p5: 468, max: 468 }, 123)], more))[0] ?? '', /421-65535 → discard/);
    const tracked = decide([answers({ min: 70, p5: 90, max: 1500 })], more);
    assert.deepEqual(rules(tracked), [
      '203.0.113.7 {"protocol":"udp","port":{"src":{"start":53}},"statetype":"new"} → drop',
    ]);
    const untracked = rules(decide([answers({ min: 70, p5: 90, max: 1500 }), syn], more));
    assert.ok(
      untracked.some((rule) => /"start":53}},"ratelimit":\d+} → drop/.test(rule)),
      untracked.join(),
    );
  }
  // Nine tenths are certain also where the ports have just so many and a twentieth is shorter.
  const spreadPorts = profileOf('udp-amplification', {
    source_ports: [one(53, 0.91), one(123, 0.06), one(389, 0.03)],
    length: { min: 70, p5: 1200, max: 1500 },
  });
  const measures = decide([spreadPorts], { limitsOf: unknown });
  assert.ok((measures.coverage['udp-amplification'] ?? 0) >= 0.9);
  assert.match(routes(measures)[0] ?? '', /source-port=53,123 packet-length=1080-65535 → discard/);
});

test('a limit leaves room for what is usual, in packets and in bits', () => {
  const tunnel = { pps: 50_000, bps: 500_000_000, baselinePps: 40_000, baselineBps: 400_000_000 };
  const small = profileOf('esp', { bps: 100_000 * 64 * 8 });
  const [rule] = decide([small], { limitsOf: () => tunnel }).flowrules;
  assert.deepEqual([rule?.canonical.action, rule?.canonical.ratelimit], ['rate-limit', 100_000_000]);
  assert.match(rules(decide([small], { limitsOf: () => tunnel }))[0] ?? '', /"ratelimit":80000/);
  const inBits = decide([profileOf('esp')], { limitsOf: () => ({ bps: 500_000_000, baselineBps: 400_000_000 }) });
  assert.equal(inBits.flowrules[0]?.canonical.action, 'rate-limit');
});

test('what a destination has in quiet times is limited, not discarded', () => {
  const limitsOf = () => ({ pps: 50_000, baselinePps: 20_000 });
  const gre = decide([profileOf('gre')], { limitsOf });
  assert.deepEqual(routes(gre), ['203.0.113.7 protocol=gre → rate-limit 25000000']);
  assert.deepEqual(rules(gre), ['203.0.113.7 {"protocol":"gre","ratelimit":50000} → drop']);
});

test('against a subnet the rules are on the subnet', () => {
  const measures = decide([profileOf('gre')], { dst: prefixFromTrusted('203.0.113.0/24') });
  assert.deepEqual(routes(measures), ['203.0.113.0/24 protocol=gre → discard']);
  assert.deepEqual(rules(measures), ['203.0.113.0/24 {"protocol":"gre"} → drop']);
});

test('a policy that observes has no rules at the edge and routes that are only shown; one that stops at the edge has both', () => {
  const observed = decide([syn], { mitigation: 'observe' });
  assert.deepEqual(rules(observed), []);
  assert.deepEqual(
    observed.flowrules.map(({ held }) => held?.by),
    ['policy'],
  );
  const atTheEdge = decide([syn], { mitigation: 'edge' });
  assert.equal(atTheEdge.edge.length, 1);
  assert.match(atTheEdge.flowrules[0]?.held?.reason ?? '', /stops at the edge/);
});

test('a route that would hit accepted traffic is held with the rule that accepts it, and only such a route', () => {
  const dns = profileOf('udp-amplification', { source_ports: [one(53)], length: { min: 1000, p5: 1100, max: 1500 } });
  const held = (accept: object, overrideAccept = false) =>
    decide([dns], {
      accepts: [acceptRule(accept)],
      policy: { mitigation: 'flowspec', overrideAccept, allowBlackhole: false },
    }).flowrules[0]?.held;
  const resolver = { protocol: 'udp', src: { start: '9.9.9.9' } };
  assert.equal(held(resolver)?.ruleUuid, '0190a000-0000-7000-8000-000000000001');
  assert.equal(held({ dst: '203.0.113.0/24', protocol: 'any' })?.by, 'accept');
  assert.equal(held(resolver, true), undefined);
  for (const other of [
    { protocol: 'tcp' },
    { protocol: 'udp', port: { src: { start: 123 } } },
    { protocol: 'udp', packetlength: 512 },
    { ...resolver, disabled: true },
    { ...resolver, action: 'drop' },
    { ...resolver, dst: '203.0.113.8' },
  ]) {
    assert.equal(held(other), undefined, JSON.stringify(other));
  }
});

test('more vectors than there is room for share one limit, and the largest have routes of their own', () => {
  const many = [
    'udp-other',
    'gre',
    'esp',
    'icmp',
    'tcp-syn',
    'tcp-rst',
    'tcp-ack',
    'tcp-syn-ack',
    'ip-other',
    'ip-fragment',
  ];
  const profiles = many.map((vector, index) => profileOf(vector, { pps: 100_000 - index }));
  const measures = decide(profiles);
  assert.equal(measures.flowrules.length, 8);
  assert.equal(routes(measures).at(-1)?.startsWith('203.0.113.7 → rate-limit'), true);
  assert.ok(
    Object.values(measures.coverage).every((share) => share >= 0.9),
    JSON.stringify(measures.coverage),
  );
  const scarce = decide(profiles, { routesLeft: 1 });
  assert.equal(scarce.flowrules.length, 1);
  assert.equal(scarce.flowrules[0]?.canonical.action, 'rate-limit');
});

test('without a route left, one on the subnet takes in what stands there, else a blackhole where the policy allows it', () => {
  const canonical = { dst: '203.0.113.9', components: { protocol: 'gre' }, action: 'discard' } as const;
  const widening = { prefix: prefixFromTrusted('203.0.113.0/24'), standing: [{ uuid: 'other', canonical }] };
  const wide = decide([profileOf('gre')], { routesLeft: 0, widening });
  assert.deepEqual(routes(wide), ['203.0.113.0/24 protocol=gre → discard']);
  assert.deepEqual(wide.flowrules[0]?.replaces, ['other']);
  assert.match(wide.notes.map(({ text }) => text).join(), /stand in for several attacks/);

  const esp = [profileOf('esp')];
  const refused = decide(esp, { routesLeft: 0, widening });
  assert.deepEqual(
    refused.flowrules.map(({ held }) => held?.by),
    ['budget'],
  );
  const given = decide(esp, { routesLeft: 0, widening, mitigation: 'rtbh' });
  assert.deepEqual(routes(given), ['203.0.113.7 → blackhole']);
  assert.equal(
    decide(esp, { routesLeft: 0, mitigation: 'rtbh', accepts: [acceptRule({})] }).flowrules[0]?.held?.by,
    'accept',
  );
});

test('what cannot be said at the edge is told', () => {
  const notes = (vector: string, more = {}) =>
    decide([profileOf(vector, more)]).notes.map(({ where, text }) => `${where}: ${text}`);
  assert.match(notes('ip-fragment').join(), /^edge: .*fragments of IPv4/);
  assert.match(notes('icmp').join(), /^edge: .*types of ICMP/);
  assert.match(notes('ip-other', { protocols: [one(253)] }).join(), /protocol 253/);
  assert.deepEqual(notes('gre'), []);
});
