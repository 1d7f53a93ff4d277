import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checksumOf, readReply, writeRequest } from './echo-message.ts';

test('a request is what other programs send: type, identifier, sequence, payload, checksum', () => {
  const payload = Buffer.from('abcd');
  assert.equal(
    writeRequest(4, 0x1234, { sequence: 7, payload }).toString('hex'),
    '080020fe' + '1234' + '0007' + '61626364',
  );
  assert.equal(
    writeRequest(6, 0x1234, { sequence: 7, payload }).toString('hex'),
    '80000000' + '1234' + '0007' + '61626364',
  );
});

test('the checksum over a message with its checksum is 0', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat({ max: 0xffff }), (octets, sequence) => {
      assert.equal(checksumOf(writeRequest(4, 1, { sequence, payload: Buffer.from(octets) })), 0);
    }),
  );
});

test('a reply is read behind an IPv4 header of any length; anything else is none', () => {
  const reply = Buffer.from('0000abcd' + '0001' + '0102' + '6869', 'hex');
  assert.deepEqual(readReply(4, reply, false), { sequence: 0x0102, payload: Buffer.from('hi') });
  for (const words of [5, 8, 15]) {
    const packet = Buffer.concat([Buffer.alloc(words * 4, 0x40 | words), reply]);
    assert.deepEqual(readReply(4, packet, true), { sequence: 0x0102, payload: Buffer.from('hi') });
  }
  assert.equal(readReply(6, reply, false), undefined);
  assert.equal(readReply(4, reply.subarray(0, 7), false), undefined);
  assert.equal(readReply(4, Buffer.from('0800abcd00010102', 'hex'), false), undefined);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.boolean(), (octets, withHeader) => {
      readReply(4, Buffer.from(octets), withHeader);
    }),
  );
});
