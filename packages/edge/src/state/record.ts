/**
 * Lines of the state files: a checksum (CRC-32, eight hex digits), a space, JSON. Owns the form; a line that was torn by
 * a crash does not pass for a whole one.
 */
import { crc32 } from 'node:zlib';

export function renderRecord(value: unknown): string {
  const text = JSON.stringify(value);
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`;
}

/** The value, or undefined when the line is damaged. */
export function parseRecord(line: string): unknown {
  if (line.length < 10 || line[8] !== ' ') return undefined;
  const text = line.slice(9);
  if (crc32(text).toString(16).padStart(8, '0') !== line.slice(0, 8)) return undefined;
  return JSON.parse(text);
}

/**
 * The whole, undamaged records from the start of a file, and how many bytes they take: what follows is a torn tail.
 */
export function readRecords(bytes: Buffer): { records: unknown[]; wholeBytes: number } {
  const records: unknown[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, at);
    if (end === -1) break;
    const value = parseRecord(bytes.toString('utf8', at, end));
    if (value === undefined) break;
    records.push(value);
    at = end + 1;
  }
  return { records, wholeBytes: at };
}
