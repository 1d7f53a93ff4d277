/**
 * Owns the capture file format that tcpreplay and tcpdump read (libpcap's savefile, pcap-savefile(5)): frames of Ethernet
 * with times, little-endian, in microseconds. Must never look into a frame.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { TimedFrame } from './schedule.ts';

const fileHeaderBytes = 24;
const recordHeaderBytes = 16;
const microsecondMagic = 0xa1b2c3d4;
const ethernet = 1;
const longestFrame = 65_535;

/**
 * Times count from 1970; `frames` must be in order. `stepMs`: times are rounded down to multiples of it, so that many have the
 * same. Answers how many were written.
 */
export function writePcap(path: string, frames: Iterable<TimedFrame>, stepMs = 0): number {
  const file = openSync(path, 'w');
  try {
    const block = new Uint8Array(1 << 20);
    const view = new DataView(block.buffer);
    view.setUint32(0, microsecondMagic, true);
    view.setUint16(4, 2, true);
    view.setUint16(6, 4, true);
    view.setUint32(16, longestFrame, true);
    view.setUint32(20, ethernet, true);
    let used = fileHeaderBytes;
    let count = 0;
    for (const { atMs, frame } of frames) {
      if (used + recordHeaderBytes + frame.length > block.length) {
        writeSync(file, block, 0, used);
        used = 0;
      }
      const microseconds = Math.round((stepMs > 0 ? atMs - (atMs % stepMs) : atMs) * 1000);
      view.setUint32(used, Math.floor(microseconds / 1e6), true);
      view.setUint32(used + 4, microseconds % 1e6, true);
      view.setUint32(used + 8, frame.length, true);
      view.setUint32(used + 12, frame.length, true);
      block.set(frame, used + recordHeaderBytes);
      used += recordHeaderBytes + frame.length;
      count++;
    }
    writeSync(file, block, 0, used);
    return count;
  } finally {
    closeSync(file);
  }
}

/** Frames of such a file, with their times in milliseconds since 1970. */
export function* readPcap(bytes: Uint8Array): Generator<TimedFrame> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < fileHeaderBytes || view.getUint32(0, true) !== microsecondMagic) {
    throw new Error('not a capture file in microseconds of a little-endian machine');
  }
  let at = fileHeaderBytes;
  // The last record of a file that is still being written may be there in part.
  while (at + recordHeaderBytes <= bytes.length) {
    const length = view.getUint32(at + 8, true);
    const end = at + recordHeaderBytes + length;
    if (end > bytes.length) return;
    const atMs = view.getUint32(at, true) * 1000 + view.getUint32(at + 4, true) / 1000;
    yield { atMs, frame: bytes.subarray(at + recordHeaderBytes, end) };
    at = end;
  }
}
