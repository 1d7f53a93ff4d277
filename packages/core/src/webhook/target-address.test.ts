import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { refusalOf } from './target-address.ts';

const refused: readonly [address: string, why: RegExp][] = [
  ['10.1.2.3', /private/],
  ['172.31.0.1', /private/],
  ['192.168.0.1', /private/],
  ['127.0.0.1', /loopback/],
  ['127.255.255.254', /loopback/],
  ['0.0.0.0', /unspecified/],
  ['0.1.2.3', /this network/],
  ['169.254.169.254', /link-local/],
  ['100.64.0.1', /carrier-grade/],
  ['100.100.100.200', /carrier-grade/],
  ['168.63.129.16', /platform/],
  ['198.18.0.1', /benchmarks/],
  ['224.0.0.1', /multicast/],
  ['255.255.255.255', /broadcast/],
  ['::', /unspecified/],
  ['::1', /loopback/],
  ['::127.0.0.1', /outside global unicast/],
  ['::ffff:127.0.0.1', /IPv4-mapped/],
  ['::ffff:a00:1', /IPv4-mapped/],
  ['::ffff:203.0.113.1', /IPv4-mapped/],
  ['64:ff9b::10.0.0.1', /NAT64 for 10\.0\.0\.1, which is a private/],
  ['64:ff9b::a9fe:a9fe', /NAT64 for 169\.254\.169\.254, which is a link-local/],
  ['64:ff9b:1::a00:1', /local NAT64/],
  ['2002:a00:1::1', /6to4/],
  ['2002:7f00:1::', /6to4/],
  ['2001:0:a00:1::1', /Teredo/],
  ['fc00::1', /unique local/],
  ['fd00:ec2::254', /unique local/],
  ['fe80::1', /link-local/],
  ['fe80::1%eth0', /judged/],
  ['fec0::1', /site-local/],
  ['ff02::1', /multicast/],
  ['localhost', /judged/],
];

for (const [address, why] of refused) {
  test(`a webhook never reaches ${address}`, () => assert.match(refusalOf(address, []) ?? 'allowed', why));
}

test('public addresses are reached, through NAT64 too', () => {
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1', '64:ff9b::1.1.1.1']) {
    assert.equal(refusalOf(address, []), undefined, address);
  }
});

test('what the operator allows is reached, and nothing beside it', () => {
  const allowed = ['10.1.0.0/16', 'fd00:1::/32', '127.0.0.1'].map(prefixFromTrusted);
  for (const address of ['10.1.255.255', 'fd00:1::7', '127.0.0.1', '64:ff9b::10.1.0.1']) {
    assert.equal(refusalOf(address, allowed), undefined, address);
  }
  for (const address of ['10.2.0.0', 'fd00:2::7', '127.0.0.2', '::ffff:10.1.0.1']) {
    assert.notEqual(refusalOf(address, allowed), undefined, address);
  }
});
