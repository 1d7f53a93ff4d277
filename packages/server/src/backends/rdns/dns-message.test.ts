import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TsigKey, tsigAlgorithms } from '@levee/core/rdns/zone-settings.ts';
import fc from 'fast-check';
import { types } from '../dns/protocol.ts';
import { readServerMessage, writeQuestion, writeUpdate } from './dns-message.ts';
import { sign, verify } from './tsig.ts';

const zone = '113.0.203.in-addr.arpa';
const now = 1_800_000_000;

test('an update is written as RFC 2136 says, with names ending in the zone', () => {
  const message = writeUpdate(0x1234, zone, 300, [
    { owner: `7.${zone}`, target: 'a.example' },
    { owner: `8.${zone}`, target: undefined },
  ]);
  const header = '123428000001000000030000';
  const zoneSection = '0331313301300332303307696e2d6164647204617270610000060001';
  const deletion = (octet: string) => `01${octet}c00c000c00ff000000000000`;
  const addition = '0137c00c000c00010000012c000b0161076578616d706c6500';
  const expected = [header, zoneSection, deletion('37'), addition, deletion('38')].join('');
  assert.equal(message.toString('hex'), expected);
});

const key = fc.record({
  name: fc.constantFrom('levee', 'k_1.example.net'),
  algorithm: fc.constantFrom(...tsigAlgorithms),
  secret: fc.uint8Array({ minLength: 1, maxLength: 80 }).map((octets) => Buffer.from(octets).toString('base64')),
}) satisfies fc.Arbitrary<TsigKey>;

/** What a server that has the key would answer. */
function answerTo(requestMac: Buffer, of: TsigKey): Buffer {
  const plain = writeQuestion(7, zone, types.soa);
  plain.writeUInt16BE(0x8400, 2);
  // The request's MAC comes first in what is signed (RFC 8945, 5.3.1): as long as it stands before the message.
  const before = Buffer.alloc(2);
  before.writeUInt16BE(requestMac.length, 0);
  return signAfter(Buffer.concat([before, requestMac]), plain, of);
}

function signAfter(prefix: Buffer, plain: Buffer, of: TsigKey): Buffer {
  // Signing prefix and message together and taking the MAC over into the message's own record.
  const both = sign(Buffer.concat([prefix, plain]), of, now);
  const own = sign(plain, of, now);
  const message = Buffer.from(own.message);
  both.mac.copy(message, message.length - 6 - both.mac.length);
  return message;
}

test('an answer is believed when it is signed with the key, for the request, in time, and unchanged', () => {
  fc.assert(
    fc.property(key, fc.uint8Array({ minLength: 20, maxLength: 64, max: 254 }), fc.nat(), (of, mac, where) => {
      const requestMac = Buffer.from(mac);
      const message = answerTo(requestMac, of);
      const read = readServerMessage(message);
      assert.ok(read?.tsig);
      assert.equal(verify(message, read.tsig, of, requestMac, now), true);
      assert.equal(verify(message, read.tsig, of, requestMac, now + 299), true);
      assert.equal(verify(message, read.tsig, of, requestMac, now + 301), false, 'too late');
      assert.equal(
        verify(message, read.tsig, of, Buffer.alloc(mac.length), now),
        mac.every((octet) => octet === 0),
      );
      const other = { ...of, secret: Buffer.from(`not ${of.secret}`).toString('base64') };
      assert.equal(verify(message, read.tsig, other, requestMac, now), false, 'another secret');
      // Any bit of what is covered: everything before the record but the id, which servers may rewrite.
      const bent = Buffer.from(message);
      const at = 2 + (where % (read.tsig.start - 2));
      bent[at] = (bent[at] ?? 0) ^ 1;
      const again = readServerMessage(bent);
      if (again?.tsig !== undefined) assert.equal(verify(bent, again.tsig, of, requestMac, now), false, `octet ${at}`);
    }),
    { numRuns: 300 },
  );
});

test('any octets are read or refused, never thrown over', () => {
  const signed = answerTo(Buffer.alloc(32), { name: 'levee', algorithm: 'hmac-sha256', secret: 'c2VjcmV0' });
  const mutated = fc.array(fc.tuple(fc.nat(signed.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
    const bent = Buffer.from(signed);
    for (const [at, octet] of changes) bent[at] = octet;
    return bent;
  });
  const cut = fc.nat(signed.length).map((length) => signed.subarray(0, length));
  const wild = fc.uint8Array({ maxLength: 300 }).map((octets) => Buffer.from(octets));
  fc.assert(
    fc.property(fc.oneof(mutated, cut, wild), (octets) => {
      const read = readServerMessage(octets);
      if (read !== undefined) assert.ok(read.answers.length <= octets.length);
    }),
    { numRuns: 20_000 },
  );
});
