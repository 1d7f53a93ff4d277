/**
 * What one flow record or packet sample tells, as the decoder hands it to the collector: one object that is filled anew
 * for each record and belongs to the decoder. Whoever wants to keep something of it copies it during the call.
 */

export class FlowRecord {
  family: 4 | 6 = 4;
  /** Words in network order; IPv4 has `…0` alone, the others are 0. All unsigned. */
  source0 = 0;
  source1 = 0;
  source2 = 0;
  source3 = 0;
  destination0 = 0;
  destination1 = 0;
  destination2 = 0;
  destination3 = 0;
  protocol = 0;
  /** 0 where there are none: other protocols, later fragments. */
  sourcePort = 0;
  destinationPort = 0;
  /** The 14th octet of the TCP header; of a flow, of all its packets. */
  tcpFlags = 0;
  /** Type × 256 + code; -1: none. */
  icmp = -1;
  /** 0: whole, 1: the first of several, 2: a later one. */
  fragment: 0 | 1 | 2 = 0;
  /** As exported, not scaled. */
  packets = 0;
  /** IP total lengths, as exported, not scaled. */
  bytes = 0;
  /** One packet stands for so many, as the exporter told with the record or before; 0: it did not. */
  samplingRate = 0;
  /** Of a flow: from its first to its last packet; 0 for one packet. */
  durationMilliseconds = 0;
  /** True for a flow record, false for a sampled packet. */
  isFlow = false;
  /** SNMP index; -1: not told. */
  inputInterface = -1;
  outputInterface = -1;
  /** IPv4's TTL, IPv6's hop limit; -1: not told. */
  ttl = -1;
  /** The packet from its IP header on, where it was sampled: octets of the datagram being decoded. */
  header: Uint8Array | undefined = undefined;
  headerStart = 0;
  headerLength = 0;
}

export type RecordSink = (record: FlowRecord) => void;

/** What a decoder counts for one exporter; only ever grows. */
export interface DecodeCounts {
  datagrams: number;
  records: number;
  /** By reason (`decode/reasons.ts`). */
  readonly dropped: Record<string, number>;
  /** Datagrams missing in sequence numbers. */
  lost: number;
}
