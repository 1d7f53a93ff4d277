import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { judgeTunnelChange, parseTunnel, parseTunnelChange } from './parse-tunnel.ts';
import type { CanonicalTunnel } from './tunnel.ts';

const good = { ips: ['203.0.113.0/28', '2001:DB8:7::/48'], endpoint: '198.51.100.9', type: 'gre' };

function canonical(fields: Record<string, unknown>): CanonicalTunnel {
  const parsed = parseTunnel(fields);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.canonical;
}

/** `field code` of each problem. */
function problems(fields: Record<string, unknown>): string[] {
  const parsed = parseTunnel(fields);
  return parsed.ok ? [] : parsed.problems.map(({ field, code }) => `${field} ${code}`);
}

test('a tunnel becomes canonical texts in a fixed order, and parses to itself again', () => {
  const first = canonical({ locations: ['fra1'], ...good, keyed: true });
  assert.equal(
    JSON.stringify(first),
    '{"ips":["203.0.113.0/28","2001:db8:7::/48"],"endpoint":"198.51.100.9","type":"GRE","locations":["fra1"]}',
  );
  assert.deepEqual(canonical({ ...first }), first);
});

test('the type is matched without case and written one way', () => {
  for (const type of ['GRE', 'gre', 'Gre']) assert.equal(canonical({ ...good, type }).type, 'GRE');
  for (const type of ['GENEVE', 'geneve', 'Geneve']) assert.equal(canonical({ ...good, type }).type, 'Geneve');
});

test('everything that is wrong is told at once', () => {
  assert.deepEqual(problems({}), ['/ips required', '/endpoint required', '/type required']);
  const wrong = {
    ips: ['203.0.113.1/28', '203.0.113.0/24', '203.0.113.7', 5],
    endpoint: '10.0.0.1',
    type: 'ipip',
    keyed: 'no',
    locations: ['fra1', '', 'fra1'],
  };
  assert.deepEqual(problems(wrong), [
    '/ips/0 host_bits_set',
    '/ips/2 overlap',
    '/ips/3 wrong_type',
    '/endpoint not_public',
    '/type not_allowed',
    '/keyed wrong_type',
    '/locations/1 wrong_type',
    '/locations/2 duplicate',
  ]);
});

test('ips are 1 to 256 subnets that do not overlap each other', () => {
  assert.deepEqual(problems({ ...good, ips: [] }), ['/ips out_of_range']);
  const many = (count: number) => Array.from({ length: count }, (_, at) => `2001:db8:${at.toString(16)}::/48`);
  assert.equal(canonical({ ...good, ips: many(256) }).ips.length, 256);
  assert.deepEqual(problems({ ...good, ips: many(257) }), ['/ips out_of_range']);
  assert.deepEqual(problems({ ...good, ips: ['203.0.113.7', '203.0.113.7'] }), ['/ips/1 duplicate']);
});

test('the endpoint is one public unicast address, and the sentence says what it is instead', () => {
  const said = (endpoint: unknown) => {
    const parsed = parseTunnel({ ...good, endpoint });
    return parsed.ok ? '' : parsed.problems.map(({ message }) => message).join();
  };
  assert.match(said('192.168.1.1'), /^endpoint: 192\.168\.1\.1 is a private address/);
  assert.match(said('100.64.0.1'), /carrier-grade/);
  assert.match(said('127.0.0.1'), /loopback/);
  assert.match(said('fe80::1'), /link-local/);
  assert.match(said('ff02::1'), /multicast/);
  assert.match(said('224.0.0.1'), /multicast/);
  assert.match(said('0.0.0.0'), /unspecified/);
  assert.match(said('::ffff:198.51.100.9'), /IPv4-mapped.*did you mean 198\.51\.100\.9/);
  assert.match(said('198.51.100.0/24'), /is no address/);
  for (const endpoint of ['198.51.100.9', '203.0.113.200', '2001:db8:900::9', '8.8.8.8'])
    assert.equal(said(endpoint), '');
});

test('an endpoint inside the tunnel’s own subnets is refused, with the subnet', () => {
  const parsed = parseTunnel({ ...good, endpoint: '203.0.113.15' });
  assert.ok(!parsed.ok);
  assert.deepEqual(
    parsed.problems.map(({ field, code }) => [field, code]),
    [['/endpoint', 'inside_ips']],
  );
  assert.match(parsed.problems[0]?.message ?? '', /203\.0\.113\.15 lies inside 203\.0\.113\.0\/28 at \/ips\/0/);
});

test('a tunnel without key is a GRE one', () => {
  assert.equal(canonical({ ...good, keyed: false }).keyed, false);
  assert.equal('keyed' in canonical({ ...good, keyed: true }), false);
  assert.equal('keyed' in canonical({ ...good, type: 'Geneve', keyed: true }), false);
  assert.deepEqual(problems({ ...good, type: 'Geneve', keyed: false }), ['/keyed not_allowed']);
});

test('a change replaces what it gives, leaves the rest, and is judged as a whole', () => {
  const stored = canonical({ ...good, keyed: false, locations: ['fra1'] });
  const changed = parseTunnelChange(stored, {
    endpoint: '198.51.100.10',
    locations: null,
    type: 'Geneve',
    expires_at: 1,
  });
  assert.ok(changed.ok);
  assert.deepEqual(changed.canonical, { ips: stored.ips, endpoint: '198.51.100.10', type: 'GRE', keyed: false });
  const inside = parseTunnelChange(stored, { endpoint: '203.0.113.3' });
  assert.ok(!inside.ok && inside.problems[0]?.code === 'inside_ips');
  assert.deepEqual(parseTunnelChange(stored, {}), { ok: true, canonical: stored });
});

test('what is wrong with a change by itself is told without the stored tunnel', () => {
  const codes = (patch: Record<string, unknown>) =>
    judgeTunnelChange(patch).map(({ field, code }) => `${field} ${code}`);
  assert.deepEqual(codes({}), []);
  assert.deepEqual(codes({ locations: null }), []);
  assert.deepEqual(codes({ endpoint: '10.0.0.1', ips: ['x'], locations: [''] }), [
    '/ips/0 invalid_address',
    '/endpoint not_public',
    '/locations/0 wrong_type',
  ]);
  assert.deepEqual(codes({ endpoint: '203.0.113.3', ips: ['203.0.113.0/28'] }), ['/endpoint inside_ips']);
});

test('no value at all makes it throw, and what it accepts is canonical', () => {
  fc.assert(
    fc.property(
      fc.record(
        {
          ips: fc.oneof(fc.anything(), fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.anything()), { maxLength: 5 })),
          endpoint: fc.oneof(fc.ipV4(), fc.ipV6(), fc.anything()),
          type: fc.oneof(fc.constantFrom('gre', 'GENEVE'), fc.anything()),
          keyed: fc.oneof(fc.boolean(), fc.anything()),
          locations: fc.anything(),
        },
        { requiredKeys: [] },
      ),
      (fields) => {
        const parsed = parseTunnel(fields);
        if (parsed.ok) assert.deepEqual(parseTunnel({ ...parsed.canonical }), parsed);
        else assert.ok(parsed.problems.length > 0);
      },
    ),
  );
});
