/**
 * Owns NetFlow version 5: a header of 24 octets, then records of 48 whose fields never change.
 */
import type { DecodeCounts, FlowRecord, RecordSink } from '../flow-record.ts';
import { u8, u16, u32 } from './octets.ts';
import { countDropped, type Reason } from './reasons.ts';
import { Sequence } from './sequence.ts';

const HEADER = 24;
const RECORD = 48;

/** The sequences of an exporter's engines; an engine is 16 bits, so there can only be so many of them. */
export class Netflow5Engines {
  readonly #sequences = new Map<number, Sequence>();

  sequence(engine: number): Sequence {
    let found = this.#sequences.get(engine);
    if (found === undefined) {
      if (this.#sequences.size >= 256) this.#sequences.clear();
      found = new Sequence();
      this.#sequences.set(engine, found);
    }
    return found;
  }
}

/** Returns why there was nothing to read. */
export function decodeNetflow5(
  data: Uint8Array,
  length: number,
  engines: Netflow5Engines,
  record: FlowRecord,
  counts: DecodeCounts,
  sink: RecordSink,
): Reason | undefined {
  if (length < HEADER) return 'datagram_cut';
  const announced = u16(data, 2);
  if (announced === 0) return 'datagram_empty';
  const whole = Math.floor((length - HEADER) / RECORD);
  const count = announced < whole ? announced : whole;
  if (whole < announced) countDropped(counts, 'datagram_cut');
  else if (length - HEADER > announced * RECORD) countDropped(counts, 'datagram_longer');
  counts.lost += engines.sequence(u16(data, 20)).note(u32(data, 16), announced, u32(data, 4));
  // The upper two bits are the way of sampling; exporters are seen that leave them 0 beside an interval.
  const samplingRate = u16(data, 22) & 0x3fff;
  record.family = 4;
  record.source1 = 0;
  record.source2 = 0;
  record.source3 = 0;
  record.destination1 = 0;
  record.destination2 = 0;
  record.destination3 = 0;
  record.fragment = 0;
  record.samplingRate = samplingRate;
  record.isFlow = true;
  record.ttl = -1;
  record.header = undefined;
  record.headerStart = 0;
  record.headerLength = 0;
  for (let index = 0, at = HEADER; index < count; index += 1, at += RECORD) {
    const protocol = u8(data, at + 38);
    const isIcmp = protocol === 1;
    record.source0 = u32(data, at);
    record.destination0 = u32(data, at + 4);
    record.inputInterface = u16(data, at + 12);
    record.outputInterface = u16(data, at + 14);
    record.packets = u32(data, at + 16);
    record.bytes = u32(data, at + 20);
    const duration = (u32(data, at + 28) - u32(data, at + 24)) | 0;
    record.durationMilliseconds = duration > 0 ? duration : 0;
    record.sourcePort = isIcmp ? 0 : u16(data, at + 32);
    record.destinationPort = isIcmp ? 0 : u16(data, at + 34);
    record.icmp = isIcmp ? u16(data, at + 34) : -1;
    record.tcpFlags = u8(data, at + 37);
    record.protocol = protocol;
    counts.records += 1;
    sink(record);
  }
  return undefined;
}
