/**
 * Messages as an independent codec (dns-packet) writes and reads them: what the server's own is held to. Test code
 * only.
 */
import assert from 'node:assert/strict';
import * as dnsPacket from 'dns-packet';
import { type Asker, answerMessage, type Reply } from '../answer.ts';
import type { ServedZones } from '../served-zones.ts';

export interface Asked {
  readonly name: string;
  /** A name, or a number that the codec has no name for. */
  readonly type?: string | number;
  readonly class?: number;
  readonly id?: number;
  /** The second word of the header. */
  readonly flags?: number;
  readonly edns?: { readonly udpBytes: number; readonly version?: number; readonly dnssecOk?: boolean };
  /** An SOA of this serial in the authority section. */
  readonly serial?: number;
}

export const typeNumbers: Readonly<Record<string, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  TXT: 16,
  OPT: 41,
  DS: 43,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
};

export function queryOctets(asked: Asked): Buffer {
  const { name, type = 'PTR', edns, serial } = asked;
  const octets = dnsPacket.encode({
    type: 'query',
    id: asked.id ?? 1,
    questions: [{ name, type: 'A' }],
    authorities:
      serial === undefined
        ? []
        : [
            {
              type: 'SOA',
              name,
              data: { mname: 'a', rname: 'b', serial, refresh: 1, retry: 1, expire: 1, minimum: 1 },
            },
          ],
    additionals:
      edns === undefined
        ? []
        : [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: edns.udpBytes,
              extendedRcode: 0,
              ednsVersion: edns.version ?? 0,
              flags: edns.dnssecOk === true ? dnsPacket.DNSSEC_OK : 0,
              flag_do: edns.dnssecOk === true,
              options: [],
            },
          ],
  });
  const afterName = 12 + (name === '.' ? 1 : name.length + 2);
  octets.writeUInt16BE(asked.flags ?? 0, 2);
  octets.writeUInt16BE(typeof type === 'number' ? type : (typeNumbers[type] ?? Number.NaN), afterName);
  octets.writeUInt16BE(asked.class ?? 1, afterName + 2);
  return octets;
}

export interface Read {
  readonly id: number;
  readonly code: number;
  readonly flags: { readonly aa: boolean; readonly tc: boolean; readonly rd: boolean; readonly ra: boolean };
  readonly question: string | undefined;
  /** `name ttl type data` */
  readonly answers: readonly string[];
  readonly authorities: readonly string[];
  readonly edns: { readonly udpBytes: number; readonly dnssecOk: boolean } | undefined;
  readonly length: number;
}

/** Fails when the codec cannot read it to the last octet. */
export function readAnswer(octets: Buffer): Read {
  const packet = dnsPacket.decode(octets);
  assert.equal(dnsPacket.decode.bytes, octets.length, 'octets are left over');
  const word = octets.readUInt16BE(2);
  assert.equal(word & 0x8000, 0x8000, 'it is no answer');
  const opt = packet.additionals?.find((record) => record.type === 'OPT');
  const edns = opt === undefined ? undefined : (opt as dnsPacket.OptAnswer);
  return {
    id: packet.id ?? -1,
    code: (word & 15) | ((edns?.extendedRcode ?? 0) << 4),
    flags: {
      aa: (word & 0x400) !== 0,
      tc: (word & 0x200) !== 0,
      rd: (word & 0x100) !== 0,
      ra: (word & 0x80) !== 0,
    },
    question: packet.questions?.[0]?.name,
    answers: (packet.answers ?? []).map(recordText),
    authorities: (packet.authorities ?? []).map(recordText),
    edns: edns === undefined ? undefined : { udpBytes: edns.udpPayloadSize, dnssecOk: edns.flag_do },
    length: octets.length,
  };
}

function recordText(record: dnsPacket.Answer): string {
  const { name, type, ttl, data } = record as { name: string; type: string; ttl: number; data: unknown };
  return `${name} ${ttl} ${type} ${typeof data === 'string' ? data : Object.values(data as object).join(' ')}`;
}

export const udp: Asker = { transport: 'udp', address: '192.0.2.1' };
export const tcp: Asker = { transport: 'tcp', address: '192.0.2.1' };

export function reply(zones: ServedZones, asked: Asked, asker: Asker = udp): Reply {
  return answerMessage(zones, queryOctets(asked), asker);
}

export function ask(zones: ServedZones, asked: Asked, asker: Asker = udp): Read {
  const given = reply(zones, asked, asker);
  assert.ok(given.kind !== 'none' && given.kind !== 'transfer', `it was ${given.kind}`);
  return readAnswer(given.octets);
}
