/** What a decoder makes of datagrams, copied out of its one record, with addresses as text. Test code only. */
import { formatAddress } from '@levee/core/net/address.ts';
import type { DecodeCounts, FlowRecord } from '../../flow-record.ts';
import { createDecoder, type Decoder } from '../decoder.ts';

export interface ReadRecord extends Omit<FlowRecord, 'header'> {
  readonly source: string;
  readonly destination: string;
  /** The octets that the slice held, copied. */
  readonly header: Buffer | undefined;
}

export interface Reading {
  readonly records: readonly ReadRecord[];
  readonly counts: DecodeCounts;
}

export function emptyCounts(): DecodeCounts {
  return { datagrams: 0, records: 0, dropped: {}, lost: 0 };
}

export function decodeAll(
  datagrams: readonly Uint8Array[],
  decoder: Decoder = createDecoder(),
  exporter = 1,
  nowMs = 1_000,
): Reading {
  const counts = emptyCounts();
  const records: ReadRecord[] = [];
  for (const datagram of datagrams) {
    decoder.decode(datagram, datagram.length, exporter, nowMs, counts, (record) => records.push(copyRecord(record)));
  }
  return { records, counts };
}

export function copyRecord(record: FlowRecord): ReadRecord {
  const { family, source0, source1, source2, source3, headerStart, headerLength } = record;
  const { destination0, destination1, destination2, destination3 } = record;
  return {
    ...record,
    source: addressText(family, [source0, source1, source2, source3]),
    destination: addressText(family, [destination0, destination1, destination2, destination3]),
    header:
      record.header === undefined
        ? undefined
        : Buffer.from(record.header.subarray(headerStart, headerStart + headerLength)),
  };
}

function addressText(family: 4 | 6, words: readonly number[]): string {
  const bits = words.slice(0, family === 4 ? 1 : 4).reduce((sum, word) => (sum << 32n) | BigInt(word), 0n);
  return formatAddress({ family, value: bits } as never);
}
