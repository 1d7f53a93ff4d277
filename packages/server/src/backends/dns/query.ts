/**
 * Reads what a client sent: one question, and of the other sections only what the server acts on (EDNS, TSIG, the
 * serial of an IXFR). Takes any octets and never throws; says whether what it cannot read deserves an answer.
 */
import { readName, skipName } from './name.ts';
import { flags, headerBytes, opcodes, types } from './protocol.ts';

export interface Query {
  readonly id: number;
  readonly opcode: number;
  readonly recursionDesired: boolean;
  /** Absent where it could not be read, and where the operation has another form. */
  readonly question?: Question;
  readonly edns?: Edns;
  readonly tsig?: ForeignSignature;
  /** Of the SOA in the authority section: what an IXFR client has. */
  readonly serial?: number;
}

export interface Question {
  /** Name, type and class as received: an answer repeats them to the letter, case included. */
  readonly octets: Uint8Array;
  /** Lower case, see name.ts. */
  readonly labels: readonly string[];
  readonly type: number;
  readonly class: number;
}

export interface Edns {
  /** What the client takes over UDP; at least 512 (RFC 6891, 6.2.3). */
  readonly udpBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
}

/** A TSIG record, as far as an error answer repeats it (RFC 8945, 4.2). */
export interface ForeignSignature {
  readonly keyName: Uint8Array;
  readonly algorithm: Uint8Array;
  readonly timeSigned: Uint8Array;
  readonly fudge: number;
  readonly originalId: number;
}

export type ReadQuery =
  | { readonly ok: true; readonly query: Query }
  /** Answer FORMERR with what could be read. */
  | { readonly ok: false; readonly answerable: true; readonly query: Query }
  /** No header, or itself an answer: answering those could go on for ever between two servers. */
  | { readonly ok: false; readonly answerable: false };

const dnssecOkBit = 0x8000;
/** More records than this in the other sections are no query of ours. */
const mostRecords = 16;

export function readQuery(message: Uint8Array): ReadQuery {
  if (message.length < headerBytes) return { ok: false, answerable: false };
  const word = u16(message, 2);
  if ((word & flags.response) !== 0) return { ok: false, answerable: false };
  const head = {
    id: u16(message, 0),
    opcode: (word >>> 11) & 15,
    recursionDesired: (word & flags.recursionDesired) !== 0,
  };
  // Other operations have sections of their own (RFC 2136): the header says enough to refuse them.
  if (head.opcode !== opcodes.query) return { ok: true, query: head };
  if (u16(message, 4) !== 1) return { ok: false, answerable: true, query: head };
  const question = readQuestion(message);
  if (question === undefined) return { ok: false, answerable: true, query: head };
  const rest = readSections(message, headerBytes + question.octets.length, question.type);
  const query = { ...head, question, ...rest.found };
  return rest.ok ? { ok: true, query } : { ok: false, answerable: true, query };
}

function readQuestion(message: Uint8Array): Question | undefined {
  const name = readName(message, headerBytes);
  if (name === undefined || name.end + 4 > message.length) return undefined;
  return {
    octets: message.subarray(headerBytes, name.end + 4),
    labels: name.labels,
    type: u16(message, name.end),
    class: u16(message, name.end + 2),
  };
}

interface Found {
  edns?: Edns;
  tsig?: ForeignSignature;
  serial?: number;
}

/** Answer, authority and additional section up to the last octet, which must be the message's. */
function readSections(message: Uint8Array, start: number, questionType: number): { ok: boolean; found: Found } {
  const found: Found = {};
  const broken = { ok: false, found };
  const answers = u16(message, 6);
  const authorities = u16(message, 8);
  const count = answers + authorities + u16(message, 10);
  if (count > mostRecords) return broken;
  let at = start;
  for (let index = 0; index < count; index += 1) {
    const head = skipName(message, at);
    if (head === undefined || head + 10 > message.length) return broken;
    const type = u16(message, head);
    const data = head + 10;
    const end = data + u16(message, head + 8);
    if (end > message.length) return broken;
    const additional = index >= answers + authorities;
    if (type === types.opt) {
      // One, at the root, in the additional section (RFC 6891, 6.1.1).
      if (!additional || found.edns !== undefined || message[at] !== 0) return broken;
      found.edns = {
        udpBytes: Math.max(512, u16(message, head + 2)),
        version: message[head + 5] ?? 0,
        dnssecOk: (u16(message, head + 6) & dnssecOkBit) !== 0,
      };
    } else if (type === types.tsig) {
      // The last record of all (RFC 8945, 5.1).
      const tsig = additional && index === count - 1 ? readSignature(message, at, data, end) : undefined;
      if (tsig === undefined) return broken;
      found.tsig = tsig;
    } else if (type === types.soa && questionType === types.ixfr && index >= answers && !additional) {
      const serial = readSerial(message, data, end);
      if (serial === undefined) return broken;
      found.serial = serial;
    }
    at = end;
  }
  return { ok: at === message.length, found };
}

function readSignature(message: Uint8Array, owner: number, data: number, end: number): ForeignSignature | undefined {
  const keyName = readName(message, owner);
  const algorithm = readName(message, data);
  if (keyName === undefined || algorithm === undefined) return undefined;
  const times = algorithm.end;
  const rest = times + 10 + (times + 10 <= end ? u16(message, times + 8) : 0);
  if (rest + 6 > end) return undefined;
  return {
    keyName: message.subarray(owner, keyName.end),
    algorithm: message.subarray(data, algorithm.end),
    timeSigned: message.subarray(times, times + 6),
    fudge: u16(message, times + 6),
    originalId: u16(message, rest),
  };
}

function readSerial(message: Uint8Array, data: number, end: number): number | undefined {
  const mailbox = skipName(message, data);
  const numbers = mailbox === undefined ? undefined : skipName(message, mailbox);
  if (numbers === undefined || numbers + 20 !== end) return undefined;
  return u16(message, numbers) * 65_536 + u16(message, numbers + 2);
}

/** Two octets; behind the end of the message zeros, which the callers have excluded. */
export function u16(message: Uint8Array, at: number): number {
  return ((message[at] ?? 0) << 8) | (message[at + 1] ?? 0);
}
