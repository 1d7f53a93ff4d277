/**
 * Writes sampled packets as a capture file that tcpdump and Wireshark read: libpcap's classic format (pcap-savefile(5)),
 * version 2.4, big-endian, with microseconds, packets from the IP header on (LINKTYPE_RAW, 101). Reads nothing, decides
 * nothing about which packets are in it.
 */

/** What is kept of a packet at most. */
export const SNAP_LENGTH = 128;
const LINKTYPE_RAW = 101;
const MAGIC = 0xa1b2c3d4;
const FILE_HEADER = 24;
const RECORD_HEADER = 16;

export interface CapturedPacket {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** IP total length of the packet as it was. */
  readonly length: number;
  readonly header: Uint8Array;
}

/** In the order given. Of none it is a valid file without packets. */
export function writePcap(packets: readonly CapturedPacket[]): Uint8Array {
  const octets = packets.reduce(
    (sum, { header }) => sum + RECORD_HEADER + Math.min(header.length, SNAP_LENGTH),
    FILE_HEADER,
  );
  const file = new Uint8Array(octets);
  const view = new DataView(file.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, 2);
  view.setUint16(6, 4);
  view.setUint32(16, SNAP_LENGTH);
  view.setUint32(20, LINKTYPE_RAW);
  let at = FILE_HEADER;
  for (const { atMs, length, header } of packets) {
    const kept = header.subarray(0, SNAP_LENGTH);
    const milliseconds = Math.max(0, Math.round(atMs));
    view.setUint32(at, Math.floor(milliseconds / 1000));
    view.setUint32(at + 4, (milliseconds % 1000) * 1000);
    view.setUint32(at + 8, kept.length);
    // A reader refuses a packet of which more was kept than there was.
    view.setUint32(at + 12, Math.max(length, kept.length));
    file.set(kept, at + RECORD_HEADER);
    at += RECORD_HEADER + kept.length;
  }
  return file;
}
