/**
 * The encoding of Protocol Buffers, as far as the messages to GoBGP need it: numbers, texts, octets, messages in messages.
 * Knows no message.
 */

const VARINT = 0;
const EIGHT_OCTETS = 1;
const LENGTH = 2;
const FOUR_OCTETS = 5;

/** In the order given; what is undefined, 0 or false is left out, as it is what is assumed then. */
export type FieldValue = number | boolean | string | Uint8Array | readonly Uint8Array[] | undefined;

/** By field number. Numbers are whole and not negative. */
export function encodeMessage(fields: Readonly<Record<number, FieldValue>>): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [key, value] of Object.entries(fields)) {
    const field = Number(key);
    if (value === undefined || value === false || value === 0) continue;
    if (typeof value === 'number' || value === true) {
      parts.push(Uint8Array.from([...varint(field * 8 + VARINT), ...varint(Number(value))]));
      continue;
    }
    const each = typeof value === 'string' ? [Buffer.from(value)] : value instanceof Uint8Array ? [value] : value;
    for (const octets of each) {
      parts.push(Uint8Array.from([...varint(field * 8 + LENGTH), ...varint(octets.length)]), octets);
    }
  }
  return Buffer.concat(parts);
}

function varint(value: number): number[] {
  const octets: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) octets.push((rest % 0x80) + 0x80);
  octets.push(rest);
  return octets;
}

export interface DecodedMessage {
  /** Of the last field of that number; 0 when there is none. Exact up to 2^53. */
  number(field: number): number;
  text(field: number): string;
  /** Undefined: there is none. */
  octets(field: number): Uint8Array | undefined;
  all(field: number): readonly Uint8Array[];
  message(field: number): DecodedMessage | undefined;
}

/** Throws on what is no message. */
export function decodeMessage(octets: Uint8Array): DecodedMessage {
  const numbers = new Map<number, number>();
  const parts = new Map<number, Uint8Array[]>();
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const octet = octets[at++];
      if (octet === undefined || scale > 2 ** 63) throw new Error('a message of GoBGP ends within a number');
      value += (octet & 0x7f) * scale;
      if (octet < 0x80) return value;
    }
  };
  while (at < octets.length) {
    const tag = next();
    const field = Math.floor(tag / 8);
    const form = tag % 8;
    if (form === VARINT) {
      numbers.set(field, next());
      continue;
    }
    const length = form === LENGTH ? next() : form === EIGHT_OCTETS ? 8 : form === FOUR_OCTETS ? 4 : -1;
    if (length < 0 || at + length > octets.length) throw new Error('a message of GoBGP is cut short');
    const part = octets.subarray(at, at + length);
    at += length;
    const known = parts.get(field);
    if (known === undefined) parts.set(field, [part]);
    else known.push(part);
  }
  const last = (field: number) => parts.get(field)?.at(-1);
  return {
    number: (field) => numbers.get(field) ?? 0,
    text: (field) => Buffer.from(last(field) ?? []).toString(),
    octets: last,
    all: (field) => parts.get(field) ?? [],
    message(field) {
      const part = last(field);
      return part && decodeMessage(part);
    },
  };
}
