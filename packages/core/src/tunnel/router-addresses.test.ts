import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTunnelAddresses } from './router-addresses.ts';

const codes = (value: readonly unknown[]) => {
  const parsed = parseTunnelAddresses(value);
  return parsed.ok ? [] : parsed.problems.map(({ field, code }) => `${field} ${code}`);
};

test('a router has one address a family at most, in canonical form and the order given', () => {
  const parsed = parseTunnelAddresses(['2001:DB8:FFFF::0001', '192.0.2.1']);
  assert.deepEqual(parsed, { ok: true, addresses: ['2001:db8:ffff::1', '192.0.2.1'] });
  assert.deepEqual(parseTunnelAddresses([]), { ok: true, addresses: [] });
  assert.deepEqual(codes(['192.0.2.1', '192.0.2.2']), ['/tunnel_addresses/1 duplicate']);
});

test('an address that customers cannot send to across the internet is refused, with what it is', () => {
  const unusable = [
    '0.0.0.0',
    '127.0.0.1',
    '169.254.1.1',
    '224.0.0.5',
    '10.0.0.1',
    '100.64.0.1',
    '::',
    'fe80::1',
    'fd00::1',
  ];
  for (const each of unusable) assert.deepEqual(codes([each]), ['/tunnel_addresses/0 not_public'], each);
  const parsed = parseTunnelAddresses(['10.0.0.1']);
  assert.match(parsed.ok ? '' : (parsed.problems[0]?.message ?? ''), /10\.0\.0\.1 is a private address.*translation/);
});

test('everything that is wrong is told at once, whatever the elements are', () => {
  assert.deepEqual(codes(['x', '192.0.2.1/24']), [
    '/tunnel_addresses/0 invalid_address',
    '/tunnel_addresses/1 invalid_address',
  ]);
  assert.deepEqual(codes([7, '127.0.0.1']), ['/tunnel_addresses/0 wrong_type', '/tunnel_addresses/1 not_public']);
});
