import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseFlowrule } from './parse-flowrule.ts';

function canonicalOf(wire: unknown) {
  const parsed = parseFlowrule(wire);
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.canonical;
}

function faultsOf(wire: unknown): string[] {
  const parsed = parseFlowrule(wire);
  assert.ok(!parsed.ok, JSON.stringify(wire));
  return parsed.problems.map(({ field, code }) => `${field} ${code}`);
}

test('a flowrule has one canonical form: components in the order of their numbers, texts as short as they get', () => {
  const wire = {
    action: 'rate-limit',
    ratelimit: 125_000,
    components: {
      fragment: 'first-fragment,is-fragment',
      'packet-length': '1000-65535',
      'source-port': '123,53',
      protocol: '17',
      'source-prefix': '198.51.100.9/32',
    },
    dst: '203.0.113.7/32',
  };
  const canonical = canonicalOf(wire);
  assert.equal(
    JSON.stringify(canonical),
    '{"dst":"203.0.113.7","components":{"source-prefix":"198.51.100.9","protocol":"udp","source-port":"53,123",' +
      '"packet-length":"1000-65535","fragment":"is-fragment,first-fragment"},"action":"rate-limit","ratelimit":125000}',
  );
  assert.deepEqual(canonicalOf(canonical), canonical);
});

test('every action takes its own field and no other', () => {
  const base = { dst: '203.0.113.7', components: {} };
  for (const treatment of [
    { action: 'discard' },
    { action: 'rate-limit', ratelimit: 1 },
    { action: 'redirect', redirect_target: '64500:4294967295' },
    { action: 'redirect', redirect_target: '4200000000:65535' },
    { action: 'redirect', redirect_target: '192.0.2.1:666' },
    { action: 'mark', mark_dscp: 0 },
    { action: 'blackhole' },
  ]) {
    assert.deepEqual(canonicalOf({ ...base, ...treatment }), { ...base, ...treatment });
  }
  assert.deepEqual(faultsOf({ ...base, action: 'discard', ratelimit: 5 }), ['/ratelimit other_action']);
  const some = { dst: '203.0.113.7', components: { protocol: 'udp' } };
  assert.deepEqual(faultsOf({ ...some, action: 'blackhole' }), ['/components other_action']);
  assert.deepEqual(faultsOf({ ...base, action: 'rate-limit' }), ['/ratelimit required']);
  assert.deepEqual(faultsOf({ ...base, action: 'rate-limit', ratelimit: 0 }), ['/ratelimit out_of_range']);
  assert.deepEqual(faultsOf({ ...base, action: 'mark', mark_dscp: 64 }), ['/mark_dscp out_of_range']);
  for (const target of [
    '64500',
    '64500:4294967296',
    '65536:65536',
    '4294967296:1',
    '192.0.2:1',
    '192.0.2.1:65536',
    7,
  ]) {
    assert.deepEqual(faultsOf({ ...base, action: 'redirect', redirect_target: target }), [
      '/redirect_target malformed',
    ]);
  }
});

test('everything that is wrong is told at once', () => {
  const wire = {
    dst: '203.0.113.7/24',
    components: { protocol: 'upd', 'tcp-flags': 'syn&!syn', 'source-prefix': 7, dscp: 5, colour: 'red' },
    action: 'drop',
    more: 1,
  };
  assert.deepEqual(faultsOf(wire).toSorted(), [
    '/action not_allowed',
    '/components/colour unknown_field',
    '/components/dscp wrong_type',
    '/components/protocol malformed',
    '/components/source-prefix wrong_type',
    '/components/tcp-flags malformed',
    '/dst host_bits_set',
    '/more unknown_field',
  ]);
  assert.deepEqual(faultsOf({}), ['/dst required', '/components required', '/action required']);
});

test('components that no packet can meet together, or that the family does not have, are refused', () => {
  const v4 = { dst: '203.0.113.7', action: 'discard' };
  const v6 = { dst: '2001:db8::7', action: 'discard' };
  const cases: [object, string[]][] = [
    [{ ...v4, components: { protocol: 'icmp', port: '53' } }, ['/components/port other_protocol']],
    [{ ...v4, components: { protocol: 'udp', 'tcp-flags': 'syn' } }, ['/components/tcp-flags other_protocol']],
    [{ ...v4, components: { protocol: 'tcp', 'icmp-type': '8' } }, ['/components/icmp-type other_protocol']],
    [{ ...v6, components: { protocol: 'icmp', 'icmp-type': '8' } }, ['/components/icmp-type other_protocol']],
    [{ ...v4, components: { 'flow-label': '5' } }, ['/components/flow-label not_in_family']],
    [{ ...v6, components: { fragment: '!dont-fragment' } }, ['/components/fragment not_in_family']],
    [{ ...v4, components: { 'source-prefix': '2001:db8::1' } }, ['/components/source-prefix mixed_families']],
  ];
  for (const [wire, faults] of cases) assert.deepEqual(faultsOf(wire), faults);
  for (const components of [
    { protocol: 'tcp,udp', port: '53' },
    { port: '53' },
    { protocol: '0-255', 'tcp-flags': 'syn' },
    { protocol: 'icmp', 'icmp-type': '8', 'icmp-code': '0' },
  ]) {
    canonicalOf({ ...v4, components });
  }
  canonicalOf({ ...v6, components: { protocol: 'ipv6-icmp', 'icmp-type': '128', 'flow-label': '0-1048575' } });
});

test('whatever passes parses to itself', () => {
  const numbers = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 70_000 }), fc.integer({ min: 0, max: 300 })), {
      minLength: 1,
      maxLength: 5,
    })
    .map((pairs) => pairs.map(([start, span]) => `${start}-${start + span}`).join(','));
  const wire = fc.record(
    {
      dst: fc.constantFrom('203.0.113.7', '203.0.113.0/24', '2001:db8::/64', '2001:db8::7/128'),
      components: fc.record(
        {
          protocol: fc.constantFrom('udp', 'tcp', '17', '6,17', '1', 'ipv6-icmp'),
          'source-port': numbers,
          'destination-port': numbers,
          'packet-length': numbers,
          'tcp-flags': fc.constantFrom('syn', '!ack&syn', 'ack,rst'),
          fragment: fc.constantFrom('is-fragment', 'last-fragment,first-fragment', '!is-fragment'),
          dscp: fc.constantFrom('0', '10-20', '63'),
        },
        { requiredKeys: [] },
      ),
      action: fc.constantFrom('discard', 'rate-limit'),
      ratelimit: fc.integer({ min: 1, max: 1_000_000 }),
    },
    { requiredKeys: ['dst', 'components', 'action'] },
  );
  let passed = 0;
  fc.assert(
    fc.property(wire, (value) => {
      const parsed = parseFlowrule(value);
      if (!parsed.ok) return;
      passed++;
      const again = parseFlowrule(JSON.parse(JSON.stringify(parsed.canonical)));
      assert.ok(again.ok);
      assert.deepEqual(again, parsed);
    }),
    { numRuns: 600 },
  );
  assert.ok(passed > 30, `${passed} passed`);
});

test('no value makes it throw, and every problem has a field, a code and a sentence', () => {
  fc.assert(
    fc.property(
      fc.object({ maxDepth: 3, key: fc.constantFrom('dst', 'components', 'action', 'protocol', 'x') }),
      (value) => {
        const parsed = parseFlowrule(value);
        if (parsed.ok) return;
        for (const { code, message } of parsed.problems) assert.ok(code.length > 0 && message.length > 3);
      },
    ),
  );
});
