import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '../net/address.ts';
import type { Address } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { prefixesOfRange, rangeContainsAddress } from '../net/range.ts';
import { addressOfOwner, addressOfReverseName, ownerName, parseReverseZone, reverseName } from './reverse-name.ts';
import { ZoneIndex, zoneClash } from './zone-index.ts';

const address: fc.Arbitrary<Address> = fc.oneof(
  fc.bigInt(0n, (1n << 32n) - 1n).map((value): Address => ({ family: 4, value })),
  fc.bigInt(0n, (1n << 128n) - 1n).map((value): Address => ({ family: 6, value })),
);
const addressOf = (text: string): Address => {
  const read = parseAddress(text);
  assert.ok(read.ok);
  return read.address;
};
const zoneOf = (name: string) => {
  const read = parseReverseZone(name);
  assert.ok(read.ok, name);
  return read.zone;
};

for (const [text, name] of [
  ['203.0.113.7', '7.113.0.203.in-addr.arpa'],
  ['0.0.0.0', '0.0.0.0.in-addr.arpa'],
  ['2001:db8::567:89ab', 'b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa'],
] as const) {
  test(`${text} stands under ${name}`, () => assert.equal(reverseName(addressOf(text)), name));
}

test('every address is found again by its name, in any case and with a final dot', () => {
  fc.assert(
    fc.property(address, (given) => {
      const name = reverseName(given);
      assert.deepEqual(addressOfReverseName(name), given);
      assert.deepEqual(addressOfReverseName(`${name.toUpperCase()}.`), given);
    }),
  );
});

for (const [name, covers] of [
  ['203.in-addr.arpa', ['203.0.0.0/8']],
  ['113.0.203.IN-ADDR.ARPA.', ['203.0.113.0/24']],
  ['7.113.0.203.in-addr.arpa', ['203.0.113.7']],
  ['8.b.d.0.1.0.0.2.ip6.arpa', ['2001:db8::/32']],
  ['8.B.D.0.1.0.0.2.ip6.arpa', ['2001:db8::/32']],
  ['0/25.2.0.192.in-addr.arpa', ['192.0.2.0/25']],
  ['128-255.2.0.192.in-addr.arpa', ['192.0.2.128/25']],
  ['0-31.2.0.192.in-addr.arpa', ['192.0.2.0/27']],
  ['1-5.2.0.192.in-addr.arpa', ['192.0.2.1', '192.0.2.2/31', '192.0.2.4/31']],
  ['64/26.2.0.192.in-addr.arpa', ['192.0.2.64/26']],
  ['7/32.2.0.192.in-addr.arpa', ['192.0.2.7']],
] as const) {
  test(`the zone ${name} covers ${covers.join(', ')}`, () => {
    assert.deepEqual(prefixesOfRange(zoneOf(name).range).map(formatPrefix), covers);
  });
}

for (const text of [
  '',
  '.',
  'in-addr.arpa',
  'ip6.arpa',
  'example.net',
  '256.0.203.in-addr.arpa',
  '07.0.203.in-addr.arpa',
  '1.2.3.4.5.in-addr.arpa',
  'x.113.0.203.in-addr.arpa',
  '10.b.d.0.1.0.0.2.ip6.arpa',
  '1/25.2.0.192.in-addr.arpa',
  '0/24.2.0.192.in-addr.arpa',
  '0/33.2.0.192.in-addr.arpa',
  '128-25.2.0.192.in-addr.arpa',
  '7-7.2.0.192.in-addr.arpa',
  '0-256.2.0.192.in-addr.arpa',
  '0/25.0.192.in-addr.arpa',
  `${'1.'.repeat(33)}ip6.arpa`,
]) {
  test(`${JSON.stringify(text)} is no reverse zone`, () => {
    const read = parseReverseZone(text);
    assert.ok(!read.ok);
    assert.match(read.sentence, /must be a reverse zone/);
  });
}

for (const [prefix, meant] of [
  ['203.0.113.0/24', '113.0.203.in-addr.arpa'],
  ['192.0.2.128/25', '128/25.2.0.192.in-addr.arpa'],
  ['2001:db8::/32', '8.b.d.0.1.0.0.2.ip6.arpa'],
] as const) {
  test(`who gives ${prefix} as a zone is told its name`, () => {
    const read = parseReverseZone(prefix);
    assert.ok(!read.ok);
    assert.match(read.sentence, new RegExp(`did you mean ${meant}\\?$`));
    assert.ok(parseReverseZone(meant).ok);
  });
}

const zoneNames = [
  '203.in-addr.arpa',
  '113.0.203.in-addr.arpa',
  '0/25.113.0.203.in-addr.arpa',
  '0-63.113.0.203.in-addr.arpa',
  '200.113.0.203.in-addr.arpa',
  '2.ip6.arpa',
  '8.b.d.0.1.0.0.2.ip6.arpa',
];

test('an address belongs to the narrowest zone that covers it, and its name there leads back to it', () => {
  const zones = zoneNames.map(zoneOf);
  const index = new ZoneIndex(zones);
  const near = fc.oneof(
    fc.bigInt(0n, 511n).map((value): Address => ({ family: 4, value: 0xcb007100n + value })),
    fc.bigInt(0n, 15n).map((value): Address => ({ family: 6, value: (0x20010db0n + value) << 96n })),
    address,
  );
  fc.assert(
    fc.property(near, (given) => {
      const covering = zones.filter((zone) => rangeContainsAddress(zone.range, given));
      const sizes = covering.map((zone) => zone.range.end - zone.range.start);
      const narrowest = covering.find((zone) => sizes.every((size) => zone.range.end - zone.range.start <= size));
      const found = index.match(given);
      assert.equal(found?.name, narrowest?.name, formatAddress(given));
      if (found === undefined) return;
      const name = ownerName(found, given);
      assert.ok(name === found.name || name.endsWith(`.${found.name}`));
      assert.deepEqual(addressOfOwner(found, name), given);
    }),
    { numRuns: 2000 },
  );
});

test('the name in a classless zone is the last octet and the zone', () => {
  const zone = zoneOf('128/25.2.0.192.in-addr.arpa');
  assert.equal(ownerName(zone, addressOf('192.0.2.200')), '200.128/25.2.0.192.in-addr.arpa');
  assert.equal(addressOfOwner(zone, '7.128/25.2.0.192.in-addr.arpa'), undefined);
  assert.equal(addressOfOwner(zone, '128/25.2.0.192.in-addr.arpa'), undefined);
});

for (const [a, b, clash] of [
  ['113.0.203.in-addr.arpa', '113.0.203.in-addr.arpa', 'same_name'],
  ['0/25.2.0.192.in-addr.arpa', '0-127.2.0.192.in-addr.arpa', 'same_addresses'],
  ['0-20.2.0.192.in-addr.arpa', '10-40.2.0.192.in-addr.arpa', 'overlap'],
  ['113.0.203.in-addr.arpa', '0-20.113.0.203.in-addr.arpa', undefined],
  ['113.0.203.in-addr.arpa', '114.0.203.in-addr.arpa', undefined],
  ['2.ip6.arpa', '2.in-addr.arpa', undefined],
] as const) {
  test(`${a} and ${b}: ${clash ?? 'may stand together'}`, () => {
    assert.equal(zoneClash(zoneOf(a), zoneOf(b)), clash);
    assert.equal(zoneClash(zoneOf(b), zoneOf(a)), clash);
  });
}
