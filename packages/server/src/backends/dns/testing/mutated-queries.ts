/**
 * Queries that somebody has damaged, endlessly and repeatably: what a port that is open to everyone is sent. And what
 * must hold of every reply, whatever was asked. Test code only.
 */
import assert from 'node:assert/strict';
import { type Asker, answerMessage } from '../answer.ts';
import type { ServedZones } from '../served-zones.ts';
import { transferMessages } from '../transfer.ts';
import { queryOctets, readAnswer } from './messages.ts';

/** Mulberry32: 32 bits of state, enough to repeat a run. */
export function numbersFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) % below;
  };
}

const names = [
  '7.113.0.203.in-addr.arpa',
  '113.0.203.IN-ADDR.arpa',
  '8.113.0.203.in-addr.arpa',
  '0.8.b.d.0.1.0.0.2.ip6.arpa',
  'example.net',
  '.',
  `${'x'.repeat(63)}.${'y'.repeat(63)}.113.0.203.in-addr.arpa`,
];
const types = ['PTR', 'SOA', 'NS', 'ANY', 'TXT', 'AXFR', 'IXFR', 'OPT', 'DS', 249, 65_535];

function intact(below: (limit: number) => number): Buffer {
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const type = pick(types);
  return queryOctets({
    name: type === 'AXFR' || type === 'IXFR' ? pick(names.slice(0, 2)) : pick(names),
    type,
    id: below(65_536),
    flags: below(8) === 0 ? below(0x8000) : 0x100,
    class: below(8) === 0 ? below(65_536) : 1,
    ...(below(2) === 0 && { edns: { udpBytes: below(65_536), version: below(10) === 0 ? 1 : 0 } }),
    ...(type === 'IXFR' && { serial: below(5) }),
  });
}

/** 0 to 4 damages: octets changed, cut, added, doubled, swapped, counts and lengths forged. */
export function mutatedQuery(below: (limit: number) => number): Buffer {
  let message = intact(below);
  for (let count = below(5); count > 0; count -= 1) {
    const at = below(message.length + 1);
    switch (below(8)) {
      case 0:
        message[at] = below(256);
        break;
      case 1:
        message[at] = (message[at] ?? 0) ^ (1 << below(8));
        break;
      case 2:
        message = message.subarray(0, at);
        break;
      case 3:
        message = Buffer.concat([message.subarray(0, at), Buffer.alloc(below(40), below(256)), message.subarray(at)]);
        break;
      case 4:
        message = Buffer.concat([message, message.subarray(at)]);
        break;
      case 5:
        if (message.length > 12) message[4 + below(8)] = below(3);
        break;
      case 6:
        if (message.length > 13) message.writeUInt16BE(0xc000 | below(64), 12 + below(message.length - 13));
        break;
      default:
        message = Buffer.concat([message, intact(below).subarray(below(12))]);
    }
  }
  return message;
}

export const secondaryAddress = '192.0.2.53';

/** @returns what kind of reply it was */
export function holdReply(zones: ServedZones, message: Buffer, asker: Asker): string {
  const before = Buffer.from(message);
  const given = answerMessage(zones, message, asker);
  assert.deepEqual(message, before, 'the query was changed');
  if (given.kind === 'none') {
    assert.ok(message.length < 12 || (message.readUInt16BE(2) & 0x8000) !== 0, 'a readable query got no answer');
    return given.kind;
  }
  if (given.kind === 'transfer') {
    assert.deepEqual([asker.transport, asker.address], ['tcp', secondaryAddress]);
    for (const part of transferMessages(given.query, given.question, given.zone)) readAnswer(part);
    return given.kind;
  }
  const read = readAnswer(given.octets);
  assert.notEqual(given.kind, 'failed');
  assert.equal(read.id, message.readUInt16BE(0));
  assert.equal((given.octets.readUInt16BE(2) ^ message.readUInt16BE(2)) & 0x7800, 0, 'another operation');
  assert.equal(read.flags.ra, false);
  if (asker.transport === 'udp')
    assert.ok(read.length <= (read.edns === undefined ? 512 : 1232), `${read.length} octets`);
  if (read.flags.tc) assert.deepEqual([asker.transport, read.answers, read.authorities], ['udp', [], []]);
  return given.kind;
}
