import assert from 'node:assert/strict';
import { isIPv4, isIPv6 } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { formatAddress, parseAddress } from './address.ts';
import type { Address } from './prefix.ts';

const ipv4: fc.Arbitrary<Address> = fc.bigInt(0n, (1n << 32n) - 1n).map((value) => ({ family: 4, value }));
/** Groups are often zero or small, so that runs to shorten are common. */
const ipv6: fc.Arbitrary<Address> = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0, max: 15 })), {
    minLength: 8,
    maxLength: 8,
  })
  .map((groups): Address => ({ family: 6, value: groups.reduce((all, group) => (all << 16n) | BigInt(group), 0n) }))
  .filter((address) => address.value >> 32n !== 0xffffn);

function canonical(text: string): string {
  const read = parseAddress(text);
  return read.ok ? formatAddress(read.address) : read.code;
}

test('what is written is read back as the same address', () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), (address) => {
      assert.deepEqual(parseAddress(formatAddress(address)), { ok: true, address });
    }),
    { numRuns: 2000 },
  );
});

test('the text of an IPv6 address is the one that the URL standard serialises', () => {
  fc.assert(
    fc.property(ipv6, (address) => {
      const text = formatAddress(address);
      assert.equal(new URL(`http://[${text}]/`).hostname, `[${text}]`);
    }),
    { numRuns: 2000 },
  );
});

test('an accepted text means here what it means to Node, to the URL standard and to ipaddr.js', () => {
  const character = fc.constantFrom(...'0123456789abcdefABCDEF::::....');
  const piece = fc.oneof(character, fc.constantFrom('::', '1.2.3.4', 'ffff', ':0:', '255'));
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(piece, { maxLength: 14 }),
        fc.ipV6().map((text) => [text]),
      ),
      (pieces) => {
        const text = pieces.join('');
        const read = parseAddress(text);
        if (!read.ok) {
          // Only what is refused on purpose may be an address to others.
          assert.ok(read.code !== 'invalid_address' || (!isIPv4(text) && !isIPv6(text)), `${text} refused`);
          return;
        }
        accepted += 1;
        assert.ok(read.address.family === 4 ? isIPv4(text) : isIPv6(text), `${text} accepted`);
        const host = new URL(`http://${read.address.family === 4 ? text : `[${text}]`}/`).hostname;
        assert.equal(
          host,
          read.address.family === 4 ? formatAddress(read.address) : `[${formatAddress(read.address)}]`,
        );
        // ipaddr.js 2.5.0 takes ::1.2.3.4 for ::ffff:1.2.3.4.
        if (read.address.family === 6 && text.includes('.')) return;
        const bytes = ipaddr.parse(text).toByteArray();
        assert.equal(
          bytes.reduce((all, byte) => (all << 8n) | BigInt(byte), 0n),
          read.address.value,
        );
      },
    ),
    { numRuns: 5000 },
  );
  assert.ok(accepted > 500, `only ${accepted} texts were addresses`);
});

for (const [text, expected] of [
  ['203.0.113.7', '203.0.113.7'],
  ['0.0.0.0', '0.0.0.0'],
  ['255.255.255.255', '255.255.255.255'],
  ['2001:DB8::7', '2001:db8::7'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:0db8::0001', '2001:db8::1'],
  ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['::1', '::1'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::192.0.2.33', '::c000:221'],
] as const) {
  test(`${text} is read and written as ${expected}`, () => assert.equal(canonical(text), expected));
}

for (const [text, code] of [
  ['', 'invalid_address'],
  ['1.2.3', 'invalid_address'],
  ['1.2.3.4.5', 'invalid_address'],
  ['1.2.3.256', 'invalid_address'],
  ['1.2.3.-4', 'invalid_address'],
  ['0x7f.0.0.1', 'invalid_address'],
  ['2130706433', 'invalid_address'],
  ['010.0.0.1', 'leading_zero'],
  ['1.2.3.00', 'leading_zero'],
  [' 1.2.3.4', 'invalid_address'],
  ['1.2.3.4\n', 'invalid_address'],
  ['١.2.3.4', 'invalid_address'],
  [':', 'invalid_address'],
  [':::', 'invalid_address'],
  ['1::2::3', 'invalid_address'],
  ['1:2:3:4:5:6:7', 'invalid_address'],
  ['1:2:3:4:5:6:7:8:9', 'invalid_address'],
  ['1:2:3:4:5:6:7::8', 'invalid_address'],
  ['12345::', 'invalid_address'],
  ['g::', 'invalid_address'],
  ['1.2.3.4::', 'invalid_address'],
  ['::1.2.3.4:5', 'invalid_address'],
  ['::1.2.03.4', 'invalid_address'],
  ['[::1]', 'invalid_address'],
  ['fe80::1%eth0', 'zone_id'],
  ['::ffff:203.0.113.7', 'ipv4_mapped'],
  ['::ffff:0:0', 'ipv4_mapped'],
  ['1'.repeat(100_000), 'invalid_address'],
] as const) {
  test(`${JSON.stringify(text.slice(0, 40))} is refused as ${code}`, () => {
    const read = parseAddress(text);
    assert.ok(!read.ok);
    assert.equal(read.code, code);
    assert.ok(read.sentence.length < 300);
  });
}

test('a refused text that is probably an address comes back with the address', () => {
  for (const [text, meant] of [
    ['010.0.0.1', '10.0.0.1'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
  ] as const) {
    const read = parseAddress(text);
    assert.ok(!read.ok && read.sentence.includes(`did you mean ${meant}?`), text);
  }
});
