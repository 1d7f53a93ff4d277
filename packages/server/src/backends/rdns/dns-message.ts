/**
 * Writes the two requests that are sent to other people's DNS servers, an UPDATE (RFC 2136) and a question, and reads
 * their answers, which it takes for any octets. Knows no connections and no keys.
 *
 * Not dns-packet: it has no class NONE or ANY without data, which is how an UPDATE deletes, and does not say where the
 * TSIG record begins, which the answer's MAC is computed up to.
 */
import { labelOctets, labelsOf } from '../dns/name.ts';
import { classes, headerBytes, opcodes, types } from '../dns/protocol.ts';
import type { PtrChange } from './port.ts';

/** Uncompressed. Throws for text that is no name: names are of our own making, or were read by core. */
export function nameOctets(name: string): Buffer {
  const parts: Uint8Array[] = [];
  for (const label of labelsOf(name)) {
    const octets = labelOctets(label);
    if (octets === undefined) throw new RangeError(`not a name: ${name}`);
    parts.push(Uint8Array.of(octets.length), octets);
  }
  return Buffer.concat([...parts, Uint8Array.of(0)]);
}

function header(id: number, word: number, counts: readonly [number, number, number, number]): Buffer {
  const buffer = Buffer.alloc(headerBytes);
  buffer.writeUInt16BE(id, 0);
  buffer.writeUInt16BE(word, 2);
  for (const [index, count] of counts.entries()) buffer.writeUInt16BE(count, 4 + 2 * index);
  return buffer;
}

function fixed(type: number, klass: number, ttlSeconds: number, dataLength: number): Buffer {
  const buffer = Buffer.alloc(10);
  buffer.writeUInt16BE(type, 0);
  buffer.writeUInt16BE(klass, 2);
  buffer.writeUInt32BE(ttlSeconds, 4);
  buffer.writeUInt16BE(dataLength, 8);
  return buffer;
}

export function writeQuestion(id: number, name: string, type: number): Buffer {
  const end = Buffer.alloc(4);
  end.writeUInt16BE(type, 0);
  end.writeUInt16BE(classes.in, 2);
  return Buffer.concat([header(id, 0, [1, 0, 0, 0]), nameOctets(name), end]);
}

/**
 * For each owner: its PTR records away (RFC 2136, 2.5.2), then the new one there (2.5.1). The server carries out all of
 * a message or nothing.
 */
export function writeUpdate(id: number, zone: string, ttlSeconds: number, changes: readonly PtrChange[]): Buffer {
  const zoneEnd = Buffer.alloc(4);
  zoneEnd.writeUInt16BE(types.soa, 0);
  zoneEnd.writeUInt16BE(classes.in, 2);
  const parts: Uint8Array[] = [nameOctets(zone), zoneEnd];
  let records = 0;
  for (const { owner, target } of changes) {
    const name = ownerOctets(owner, zone);
    parts.push(name, fixed(types.ptr, classes.any, 0, 0));
    records += 1;
    if (target === undefined) continue;
    const data = nameOctets(target);
    parts.push(name, fixed(types.ptr, classes.in, ttlSeconds, data.length), data);
    records += 1;
  }
  return Buffer.concat([header(id, opcodes.update << 11, [1, 0, records, 0]), ...parts]);
}

/** The zone's name stands right behind the header: names inside it end in a pointer there (RFC 1035, 4.1.4). */
function ownerOctets(owner: string, zone: string): Buffer {
  const pointer = Uint8Array.of(0xc0, headerBytes);
  if (owner === zone) return Buffer.from(pointer);
  if (!owner.endsWith(`.${zone}`)) return nameOctets(owner);
  return Buffer.concat([nameOctets(owner.slice(0, -zone.length - 1)).subarray(0, -1), pointer]);
}

/** What a change takes at most, in octets of an UPDATE. */
export function octetsOfChange({ owner, target }: PtrChange): number {
  return 2 * (owner.length + 4 + 10) + (target === undefined ? 0 : target.length + 2);
}

export interface ServerRecord {
  readonly owner: string;
  readonly type: number;
  /** Of PTR and CNAME: the name. */
  readonly target: string | undefined;
}

export interface ServerTsig {
  /** Where the record begins: the MAC covers what is before it. */
  readonly start: number;
  readonly keyName: string;
  readonly algorithm: string;
  readonly timeSigned: number;
  readonly fudgeSeconds: number;
  readonly mac: Buffer;
  readonly originalId: number;
  readonly error: number;
  readonly other: Buffer;
}

export interface ServerMessage {
  readonly id: number;
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly ServerRecord[];
  readonly tsig: ServerTsig | undefined;
}

/** Undefined: not a whole answer. */
export function readServerMessage(message: Buffer): ServerMessage | undefined {
  if (message.length < headerBytes) return undefined;
  const word = message.readUInt16BE(2);
  if ((word & 0x8000) === 0) return undefined;
  const [questions = 0, answerCount = 0, authority = 0, additional = 0] = [4, 6, 8, 10].map((at) =>
    message.readUInt16BE(at),
  );
  let at = headerBytes;
  for (let index = 0; index < questions; index += 1) {
    const name = readServerName(message, at);
    if (name === undefined || name.end + 4 > message.length) return undefined;
    at = name.end + 4;
  }
  const answers: ServerRecord[] = [];
  let tsig: ServerTsig | undefined;
  const total = answerCount + authority + additional;
  for (let index = 0; index < total; index += 1) {
    const start = at;
    const name = readServerName(message, at);
    if (name === undefined || name.end + 10 > message.length) return undefined;
    const type = message.readUInt16BE(name.end);
    const data = name.end + 10;
    at = data + message.readUInt16BE(name.end + 8);
    if (at > message.length) return undefined;
    if (type === types.tsig) {
      // RFC 8945, 5.2: the last record of the message.
      if (index !== total - 1) return undefined;
      tsig = readTsig(message, start, name.text, data, at);
      if (tsig === undefined) return undefined;
    } else if (index < answerCount) {
      const target = type === types.ptr || type === types.cname ? readServerName(message, data)?.text : undefined;
      answers.push({ owner: name.text, type, target });
    }
  }
  return { id: message.readUInt16BE(0), rcode: word & 15, authoritative: (word & 0x0400) !== 0, answers, tsig };
}

function readTsig(message: Buffer, start: number, keyName: string, data: number, end: number): ServerTsig | undefined {
  const algorithm = readServerName(message, data);
  if (algorithm === undefined || algorithm.end + 16 > end) return undefined;
  const times = algorithm.end;
  const macEnd = times + 10 + message.readUInt16BE(times + 8);
  if (macEnd + 6 > end || macEnd + 6 + message.readUInt16BE(macEnd + 4) !== end) return undefined;
  return {
    start,
    keyName,
    algorithm: algorithm.text,
    timeSigned: message.readUIntBE(times, 6),
    fudgeSeconds: message.readUInt16BE(times + 6),
    mac: message.subarray(times + 10, macEnd),
    originalId: message.readUInt16BE(macEnd),
    error: message.readUInt16BE(macEnd + 2),
    other: message.subarray(macEnd + 6, end),
  };
}

/** Lower case. A pointer must lead backwards (RFC 1035, 4.1.4), so that this ends. */
function readServerName(message: Buffer, from: number): { readonly text: string; readonly end: number } | undefined {
  const labels: string[] = [];
  let at = from;
  let end: number | undefined;
  let octets = 0;
  for (;;) {
    const length = message[at];
    if (length === undefined) return undefined;
    if (length >= 0xc0) {
      if (at + 2 > message.length) return undefined;
      const to = message.readUInt16BE(at) & 0x3fff;
      if (to >= at) return undefined;
      end ??= at + 2;
      at = to;
      continue;
    }
    if (length > 63 || at + 1 + length > message.length) return undefined;
    octets += 1 + length;
    if (octets > 255) return undefined;
    if (length === 0) return { text: labels.join('.'), end: end ?? at + 1 };
    labels.push(labelText(message.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
}

function labelText(octets: Buffer): string {
  let text = '';
  for (const octet of octets) {
    const character = String.fromCharCode(octet);
    text += /[A-Za-z0-9_/-]/.test(character) ? character.toLowerCase() : `\\${String(octet).padStart(3, '0')}`;
  }
  return text;
}
