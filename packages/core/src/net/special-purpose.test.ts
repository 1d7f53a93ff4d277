import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddress } from './address.ts';
import { specialPurposeOf } from './special-purpose.ts';

function special(text: string): string | undefined {
  const read = parseAddress(text);
  assert.ok(read.ok, text);
  return specialPurposeOf(read.address);
}

test('an address at either end of a special-purpose range is told by what it is for, and its neighbours are public', () => {
  const cases: [string, RegExp | undefined][] = [
    ['0.0.0.0', /unspecified/],
    ['0.255.255.255', /this network/],
    ['1.0.0.0', undefined],
    ['9.255.255.255', undefined],
    ['10.0.0.0', /private/],
    ['10.255.255.255', /private/],
    ['11.0.0.0', undefined],
    ['100.63.255.255', undefined],
    ['100.64.0.0', /carrier-grade/],
    ['100.127.255.255', /carrier-grade/],
    ['100.128.0.0', undefined],
    ['127.0.0.1', /loopback/],
    ['169.254.169.254', /link-local/],
    ['172.15.255.255', undefined],
    ['172.16.0.0', /private/],
    ['172.31.255.255', /private/],
    ['172.32.0.0', undefined],
    ['192.0.0.8', /protocols/],
    ['192.88.99.1', /6to4/],
    ['192.168.1.1', /private/],
    ['192.169.0.0', undefined],
    ['198.17.255.255', undefined],
    ['198.19.255.255', /benchmarks/],
    ['223.255.255.255', undefined],
    ['224.0.0.1', /multicast/],
    ['239.255.255.255', /multicast/],
    ['240.0.0.1', /reserved/],
    ['255.255.255.255', /broadcast/],
    ['::', /unspecified/],
    ['::1', /loopback/],
    ['::2', /outside global unicast/],
    ['64:ff9b::1', /NAT64/],
    ['64:ff9b:1::1', /local NAT64/],
    ['100::1', /discarded/],
    ['2001::1', /Teredo/],
    ['2001:1ff::1', /protocols/],
    ['2001:200::1', undefined],
    ['2002:cb00:7109::1', /6to4/],
    ['2a00::1', undefined],
    ['3fff:ffff::1', undefined],
    ['4000::1', /outside global unicast/],
    ['fd00::1', /unique local/],
    ['fe80::1', /link-local/],
    ['fec0::1', /site-local/],
    ['ff02::1', /multicast/],
  ];
  for (const [text, words] of cases) {
    if (words === undefined) assert.equal(special(text), undefined, text);
    else assert.match(special(text) ?? 'public', words, text);
  }
});

test('documentation ranges pass for public', () => {
  for (const text of ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1']) {
    assert.equal(special(text), undefined, text);
  }
});
