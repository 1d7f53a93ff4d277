/** What the datagrams of a capture come to by a plain model: sums by destination and vector. For tests of the collector. */
import { classify } from '@levee/core/detection/vector.ts';
import { addressText } from '../../aggregate/address-words.ts';
import type { SlotReport } from '../../bus/port.ts';
import { createDecoder } from '../../decode/decoder.ts';

/** By `address vector`: packets and octets, scaled, and samples. */
export type Rows = Map<string, [number, number, number]>;

export interface Expected {
  readonly rows: Rows;
  readonly records: number;
}

/** `scale` 0: as the records tell. */
export function expectedRows(datagrams: readonly Uint8Array[], scale = 0): Expected {
  const rows: Rows = new Map();
  const decoder = createDecoder();
  const counts = { datagrams: 0, records: 0, dropped: {}, lost: 0 };
  for (const datagram of datagrams) {
    decoder.decode(datagram, datagram.length, 0, 1, counts, (record) => {
      const { family, destination0, destination1, destination2, destination3 } = record;
      const vector = classify(record.protocol, record.sourcePort, record.tcpFlags, record.fragment > 0, record.isFlow);
      const text = addressText(family, destination0, destination1, destination2, destination3);
      const by = scale || record.samplingRate || 1;
      addTo(rows, `${text} ${vector}`, record.packets * by, record.bytes * by, record.packets);
    });
  }
  return { rows, records: counts.records };
}

export function addReport(rows: Rows, report: SlotReport): void {
  const { count, families, addresses, vectors, packets, bytes, samples } = report;
  for (let i = 0; i < count; i++) {
    const [a = 0, b = 0, c = 0, d = 0] = addresses.subarray(i * 4, i * 4 + 4);
    const text = addressText(families[i] === 4 ? 4 : 6, a, b, c, d);
    addTo(rows, `${text} ${vectors[i]}`, packets[i] ?? 0, bytes[i] ?? 0, samples[i] ?? 0);
  }
}

export function totalOf(rows: Rows): [number, number, number] {
  const total: [number, number, number] = [0, 0, 0];
  for (const row of rows.values())
    for (const [column, value] of row.entries()) total[column] = (total[column] ?? 0) + value;
  return total;
}

function addTo(rows: Rows, key: string, packets: number, bytes: number, samples: number): void {
  const row = rows.get(key) ?? [0, 0, 0];
  rows.set(key, [row[0] + packets, row[1] + bytes, row[2] + samples]);
}
