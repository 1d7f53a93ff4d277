import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocolNames } from '@levee/contract/protocols.ts';
import { parsePatch, parseRule } from './parse.ts';
import { portProtocolNames } from './protocol-traits.ts';
import { ruleFields } from './wire.ts';

const identity = { uuid: '0190b5b0-0000-7000-8000-000000000001', sequence: 1 };
const base = { dst: '203.0.113.7', protocol: 'tcp', action: 'drop' };
const base6 = { dst: '2001:db8::7', protocol: 'tcp', action: 'drop' };

function accepted(wire: unknown) {
  const parsed = parseRule(wire, identity);
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed;
}

function problemsOf(wire: unknown) {
  const parsed = parseRule(wire, identity);
  assert.ok(!parsed.ok, 'was accepted');
  return parsed.problems;
}

test('the three required fields make a rule with the defaults of the others', () => {
  const { rule, canonical } = accepted(base);
  assert.deepEqual(canonical, { ...base, priority: 1000, disabled: false });
  assert.deepEqual(rule, {
    ...identity,
    dst: { family: 4, value: 0xcb007107n, length: 32 },
    protocol: 'tcp',
    action: 'drop',
    priority: 1000,
    disabled: false,
  });
});

test('every field arrives in the rule and, canonical and in fixed order, in what is stored', () => {
  const { rule, canonical } = accepted({
    statetype: 'new',
    packettype: 'host',
    packetlength: 60,
    ratelimit: 4294967295,
    tcpflags: ['ack', 'syn', 'ack'],
    disabled: true,
    port: { dst: { start: 80, end: 443 }, src: { start: 1024 } },
    src: { start: '2001:DB8:0:0::/33' },
    descr: 'Grüße 🌊',
    priority: 2147483647,
    action: 'accept',
    protocol: 'tcp',
    dst: '2001:0DB8:0:0:0::/48',
  });
  assert.deepEqual(canonical, {
    dst: '2001:db8::/48',
    protocol: 'tcp',
    action: 'accept',
    priority: 2147483647,
    descr: 'Grüße 🌊',
    src: { start: '2001:db8::/33' },
    port: { src: { start: 1024 }, dst: { start: 80, end: 443 } },
    disabled: true,
    tcpflags: ['syn', 'ack'],
    ratelimit: 4294967295,
    packetlength: 60,
    packettype: 'host',
    statetype: 'new',
  });
  assert.deepEqual(Object.keys(canonical), [...ruleFields]);
  assert.deepEqual(rule, {
    ...identity,
    dst: { family: 6, value: 0x20010db8n << 96n, length: 48 },
    protocol: 'tcp',
    action: 'accept',
    priority: 2147483647,
    src: { family: 6, start: 0x20010db8n << 96n, end: (0x20010db8n << 96n) | ((1n << 95n) - 1n) },
    sourcePorts: { start: 1024, end: 1024 },
    destinationPorts: { start: 80, end: 443 },
    tcpFlags: 0x12,
    rateLimitPacketsPerSecond: 4294967295,
    packetLengthBytes: 60,
    packetType: 'host',
    connectionState: 'new',
    disabled: true,
  });
});

for (const [what, wire, expected] of [
  ['a single address loses its length', { ...base, dst: '203.0.113.7/32' }, { dst: '203.0.113.7' }],
  ['a rate limit of 0 is no limit', { ...base, ratelimit: 0 }, { ratelimit: undefined }],
  [
    'a range keeps both ends',
    { ...base, src: { start: '10.0.0.1', end: '10.0.0.1' } },
    { src: { start: '10.0.0.1', end: '10.0.0.1' } },
  ],
  ['a source address loses its length', { ...base, src: { start: '10.0.0.1/32' } }, { src: { start: '10.0.0.1' } }],
  ['port 0 is a port', { ...base, port: { src: { start: 0, end: 0 } } }, { port: { src: { start: 0, end: 0 } } }],
  ['an empty description stays', { ...base, descr: '' }, { descr: '' }],
  ['no flags are no condition', { ...base, protocol: 'tcp', tcpflags: [] }, { protocol: 'tcp' }],
  ['no flags go with any protocol', { ...base, protocol: 'udp', tcpflags: [] }, { protocol: 'udp' }],
  ['255 characters are 255 code points', { ...base, descr: '🌊'.repeat(255) }, { descr: '🌊'.repeat(255) }],
  ['every address of a family may be meant', { ...base, dst: '0.0.0.0/0' }, { dst: '0.0.0.0/0' }],
] as const) {
  test(`canonical: ${what}`, () => {
    const canonical: Readonly<Record<string, unknown>> = { ...accepted(wire).canonical };
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(canonical[name], value);
  });
}

/** [wire, pointer, code, a part of the sentence] */
const refusals: readonly (readonly [object, string, string, string])[] = [
  [{ protocol: 'tcp', action: 'drop' }, '/dst', 'required', 'is required'],
  [{ dst: '203.0.113.7', action: 'drop' }, '/protocol', 'required', 'is required'],
  [{ dst: '203.0.113.7', protocol: 'tcp' }, '/action', 'required', 'accept, continue, drop, reject'],
  [{ ...base, dst: null }, '/dst', 'wrong_type', 'received null'],
  [{ ...base, dst: ['203.0.113.7'] }, '/dst', 'wrong_type', 'received an array of 1'],
  [{ ...base, dst: 'example.org' }, '/dst', 'invalid_address', 'example.org'],
  [{ ...base, dst: '203.0.113.7/24' }, '/dst', 'host_bits_set', 'did you mean 203.0.113.0/24 or 203.0.113.7/32?'],
  [{ ...base, dst: '::ffff:203.0.113.7' }, '/dst', 'ipv4_mapped', '203.0.113.7'],
  [{ ...base, dst: '203.0.113.0/33' }, '/dst', 'invalid_prefix_length', '0 to 32'],
  [{ ...base, protocol: 'TCP' }, '/protocol', 'not_allowed', 'received the string "TCP"; did you mean tcp?'],
  [{ ...base, protocol: 6 }, '/protocol', 'wrong_type', 'received 6'],
  [{ ...base, protocol: 'toString' }, '/protocol', 'not_allowed', 'toString'],
  [{ ...base, action: 'deny' }, '/action', 'not_allowed', 'accept, continue, drop, reject'],
  [{ ...base, priority: 0 }, '/priority', 'out_of_range', 'from 1 to 2147483647, received 0'],
  [{ ...base, priority: 2147483648 }, '/priority', 'out_of_range', 'received 2147483648'],
  [{ ...base, priority: '5' }, '/priority', 'wrong_type', 'received the string "5"'],
  [{ ...base, priority: 1.5 }, '/priority', 'wrong_type', 'received 1.5'],
  [{ ...base, priority: Number.NaN }, '/priority', 'wrong_type', 'received NaN'],
  [{ ...base, priority: null }, '/priority', 'wrong_type', 'received null'],
  [{ ...base, ratelimit: -1 }, '/ratelimit', 'out_of_range', 'from 0 to 4294967295'],
  [{ ...base, ratelimit: 4294967296 }, '/ratelimit', 'out_of_range', 'from 0 to 4294967295'],
  [{ ...base, packetlength: 0 }, '/packetlength', 'out_of_range', 'from 1 to 65535'],
  [{ ...base, packetlength: 65536 }, '/packetlength', 'out_of_range', 'from 1 to 65535'],
  [{ ...base, disabled: 'false' }, '/disabled', 'wrong_type', 'true or false'],
  [{ ...base, packettype: ['host'] }, '/packettype', 'wrong_type', 'broadcast, host, multicast, other'],
  [{ ...base, packettype: 'unicast' }, '/packettype', 'not_allowed', 'broadcast, host, multicast, other'],
  [{ ...base, statetype: 'untracked' }, '/statetype', 'not_allowed', 'established, invalid, new, related'],
  [{ ...base, descr: 7 }, '/descr', 'wrong_type', 'string'],
  [{ ...base, descr: 'a'.repeat(256) }, '/descr', 'too_long', 'at most 255 characters, received 256'],
  [{ ...base, descr: 'a'.repeat(1_000_000) }, '/descr', 'too_long', 'received more than'],
  [{ ...base, descr: 'a\u0000b' }, '/descr', 'control_character', 'U+0000 at 1'],
  [{ ...base, descr: 'line\n' }, '/descr', 'control_character', 'U+000A'],
  [{ ...base, descr: '\u009b31m' }, '/descr', 'control_character', 'U+009B'],
  [{ ...base, descr: 'half \ud83c' }, '/descr', 'malformed_text', 'well-formed'],
  [{ ...base, src: '10.0.0.1' }, '/src', 'wrong_type', 'JSON object'],
  [{ ...base, src: {} }, '/src/start', 'required', 'is required'],
  [{ ...base, src: { end: '10.0.0.1' } }, '/src/start', 'required', 'is required'],
  [{ ...base, src: { start: '10.0.0.1', stop: '10.0.0.2' } }, '/src/stop', 'unknown_field', 'start, end'],
  [{ ...base, src: { start: '10.0.0.0/8', end: '10.0.0.1' } }, '/src/start', 'subnet_with_end', 'one address'],
  [{ ...base, src: { start: '10.0.0.1', end: '10.0.0.0/8' } }, '/src/end', 'invalid_address', '10.0.0.0/8'],
  [{ ...base, src: { start: '10.0.0.2', end: '10.0.0.1' } }, '/src', 'start_after_end', '10.0.0.2'],
  [{ ...base, src: { start: '10.0.0.2', end: '::1' } }, '/src', 'mixed_families', 'one family'],
  [{ ...base, src: { start: '10.0.0.1/8' } }, '/src/start', 'host_bits_set', '10.0.0.0/8'],
  [{ ...base, src: { start: '10.0.0.1', end: null } }, '/src/end', 'wrong_type', 'received null'],
  [{ ...base, src: { start: '2001:db8::/32' } }, '/src', 'mixed_families', 'dst 203.0.113.7 is IPv4'],
  [{ ...base6, src: { start: '10.0.0.1', end: '10.0.0.2' } }, '/src', 'mixed_families', 'one family'],
  [{ ...base, port: 80 }, '/port', 'wrong_type', 'JSON object'],
  [{ ...base, port: {} }, '/port', 'empty', 'src or dst'],
  [{ ...base, port: { dest: { start: 1 } } }, '/port/dest', 'unknown_field', 'src, dst'],
  [{ ...base, port: { dst: 80 } }, '/port/dst', 'wrong_type', 'received 80'],
  [{ ...base, port: { dst: {} } }, '/port/dst/start', 'required', 'is required'],
  [{ ...base, port: { dst: { end: 80 } } }, '/port/dst/start', 'required', 'is required'],
  [{ ...base, port: { dst: { start: '80' } } }, '/port/dst/start', 'wrong_type', 'from 0 to 65535'],
  [{ ...base, port: { dst: { start: 80, end: 65536 } } }, '/port/dst/end', 'out_of_range', 'from 0 to 65535'],
  [{ ...base, port: { src: { start: 81, end: 80 } } }, '/port/src', 'start_after_end', '81'],
  [{ ...base, tcpflags: 'syn' }, '/tcpflags', 'wrong_type', 'array'],
  [{ ...base, tcpflags: ['syn', 'SYN'] }, '/tcpflags/1', 'not_allowed', 'SYN'],
  [{ ...base, tcpflags: [2] }, '/tcpflags/0', 'wrong_type', 'received 2'],
  [{ ...base, tcpflags: Array(9).fill('syn') }, '/tcpflags', 'too_long', 'up to 8'],
  [{ ...base, protocol: 'udp', tcpflags: ['syn'] }, '/tcpflags', 'tcpflags_without_tcp', 'received the protocol udp'],
  [{ ...base, protocol: 'any', tcpflags: ['syn'] }, '/tcpflags', 'tcpflags_without_tcp', 'received the protocol any'],
  [{ ...base, protocol: 'mptcp', tcpflags: ['syn'] }, '/tcpflags', 'tcpflags_without_tcp', 'protocol mptcp'],
  [{ ...base, protocol: 'icmp', port: { dst: { start: 80 } } }, '/port', 'ports_without_transport', 'protocol icmp'],
  [{ ...base6, protocol: 'ip' }, '/protocol', 'protocol_family', 'use any'],
  [{ ...base6, protocol: 'icmp' }, '/protocol', 'protocol_family', 'use ipv6-icmp'],
  [{ ...base, protocol: 'ipv6-icmp' }, '/protocol', 'protocol_family', 'use icmp'],
  [{ ...base, comment: 'x' }, '/comment', 'unknown_field', 'allowed are dst, protocol'],
  [{ ...base, 'a/b~c': 'x' }, '/a~1b~0c', 'unknown_field', '"a/b~c"'],
  [{ ...base, expires_at: '2030-01-01T00:00:00Z' }, '/expires_at', 'unknown_field', 'expires_at'],
  [
    JSON.parse('{"dst":"203.0.113.7","protocol":"tcp","action":"drop","__proto__":{"priority":1}}'),
    '/__proto__',
    'unknown_field',
    '__proto__',
  ],
];

for (const [wire, field, code, said] of refusals) {
  test(`${JSON.stringify(wire).slice(0, 110)} is one problem: ${field} ${code}`, () => {
    const problems = problemsOf(wire);
    assert.deepEqual(
      problems.map((problem) => [problem.field, problem.code]),
      [[field, code]],
    );
    const message = problems[0]?.message ?? '';
    assert.ok(message.includes(said), message);
    assert.ok(message.length < 700, message);
  });
}

for (const wire of [undefined, null, 'x', 7, true, [], [base]]) {
  test(`${JSON.stringify(wire)} is no rule`, () => {
    assert.deepEqual(
      problemsOf(wire).map((problem) => [problem.field, problem.code]),
      [['', 'wrong_type']],
    );
  });
}

test('all problems are told at once', () => {
  const problems = problemsOf({
    dst: '203.0.113.7/24',
    protocol: 'icmp',
    action: 'x',
    priority: 0,
    port: { dst: { start: 80, end: 70 } },
    tcpflags: ['no'],
    foo: 1,
  });
  assert.deepEqual(problems.map((problem) => problem.field).sort(), [
    '/action',
    '/dst',
    '/foo',
    '/port',
    '/port/dst',
    '/priority',
    '/tcpflags',
    '/tcpflags/0',
  ]);
});

test('a field that only inheritance gives is absent', () => {
  assert.deepEqual(
    problemsOf(Object.create(base)).map((problem) => problem.code),
    ['required', 'required', 'required'],
  );
});

test('thousands of unknown fields make a short answer', () => {
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`field${index}`, 1]));
  const problems = problemsOf({ ...base, ...many });
  assert.equal(problems.length, 21);
  assert.ok(problems.at(-1)?.message.includes('49980 more'));
  const few = Object.fromEntries(Object.entries(many).slice(0, 20));
  assert.equal(problemsOf({ ...base, ...few }).length, 20);
  const long = problemsOf({ ...base, ['x'.repeat(1_000_000)]: 1 });
  assert.ok(JSON.stringify(long).length < 500);
});

test('ports go with exactly the protocols of the interface', () => {
  for (const protocol of protocolNames) {
    const dst = protocol === 'ipv6-icmp' ? '2001:db8::7' : '203.0.113.7';
    const parsed = parseRule({ dst, protocol, action: 'drop', port: { dst: { start: 1 } } }, identity);
    assert.equal(
      parsed.ok,
      portProtocolNames.some((name) => name === protocol),
      protocol,
    );
  }
  assert.deepEqual([...portProtocolNames].sort(), ['any', 'dccp', 'ip', 'sctp', 'tcp', 'udp', 'udplite']);
});

test('every protocol goes with both families but ip and icmp (IPv4) and ipv6-icmp (IPv6)', () => {
  for (const protocol of protocolNames) {
    const families = (['203.0.113.7', '2001:db8::7'] as const).map(
      (dst) => parseRule({ ...base, dst, protocol }, identity).ok,
    );
    const expected = protocol === 'ip' || protocol === 'icmp' ? [true, false] : [protocol !== 'ipv6-icmp', true];
    assert.deepEqual(families, expected, protocol);
  }
});

const stored = accepted({
  ...base,
  priority: 5,
  descr: 'old',
  src: { start: '10.0.0.1', end: '10.0.0.9' },
  port: { src: { start: 1 }, dst: { start: 80 } },
  tcpflags: ['syn'],
  ratelimit: 10,
}).canonical;

function patched(patch: unknown) {
  return parsePatch(stored, patch, identity);
}

test('an empty patch changes nothing', () => {
  const parsed = patched({});
  assert.ok(parsed.ok);
  assert.deepEqual(parsed.canonical, stored);
});

test('a patched field replaces the stored one whole, the others stay', () => {
  const parsed = patched({ src: { start: '192.0.2.0/24' }, port: { dst: { start: 443 } }, priority: 6 });
  assert.ok(parsed.ok);
  assert.deepEqual(parsed.canonical, {
    ...stored,
    src: { start: '192.0.2.0/24' },
    port: { dst: { start: 443 } },
    priority: 6,
  });
});

test('null takes an optional field away, and brings priority and disabled back to their defaults', () => {
  const removed = {
    src: null,
    port: null,
    tcpflags: null,
    ratelimit: null,
    descr: null,
    priority: null,
    disabled: null,
  };
  const parsed = patched(removed);
  assert.ok(parsed.ok);
  assert.deepEqual(parsed.canonical, { ...base, priority: 1000, disabled: false });
  assert.deepEqual(
    Object.keys(parsed.rule).filter((name) => /src|ports|flags|limit/i.test(name)),
    [],
  );
});

for (const [patch, field, code] of [
  [{ dst: null }, '/dst', 'required'],
  [{ protocol: 'udp' }, '/tcpflags', 'tcpflags_without_tcp'],
  [{ dst: '2001:db8::7' }, '/src', 'mixed_families'],
  [{ src: { start: null } }, '/src/start', 'wrong_type'],
  [{ foo: null }, '/foo', 'unknown_field'],
  [JSON.parse('{"__proto__":{"tcpflags":null}}'), '/__proto__', 'unknown_field'],
  [[], '', 'wrong_type'],
  [null, '', 'wrong_type'],
] as const) {
  test(`patch ${JSON.stringify(patch)} is refused: ${field} ${code}`, () => {
    const parsed = patched(patch);
    assert.ok(!parsed.ok);
    assert.ok(
      parsed.problems.some((problem) => problem.field === field && problem.code === code),
      JSON.stringify(parsed.problems),
    );
  });
}
