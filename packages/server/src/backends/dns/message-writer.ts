/**
 * Writes one message: header, question, records, with names compressed (RFC 1035, 4.1.4). Owns the size: a record
 * that does not fit is not written, and nothing of it stays. Knows no zones.
 */
import { labelOctets, longestName } from './name.ts';
import { classes, headerBytes, tsigBadKey, types } from './protocol.ts';
import type { Edns, ForeignSignature, Question } from './query.ts';

/** Pointers hold 14 bits. */
const farthestPointer = 0x3fff;
const sections = { answer: 6, authority: 8, additional: 10 } as const;
export type Section = keyof typeof sections;

export interface StartOfAuthority {
  readonly primary: string;
  readonly mailbox: string;
  readonly serial: number;
  readonly refreshSeconds: number;
  readonly retrySeconds: number;
  readonly expireSeconds: number;
  readonly minimumSeconds: number;
}

export class MessageWriter {
  #buffer: Buffer = Buffer.alloc(0);
  #at = 0;
  #limit = 0;
  #reserved = 0;
  /** Name in text → where it stands. */
  readonly #names = new Map<string, number>();

  /** Begins anew in `buffer`, with at most `limit` octets of it. The question always fits: it came in a message. */
  start(buffer: Buffer, limit: number, id: number, word: number, question?: Question): void {
    this.#buffer = buffer;
    this.#limit = limit;
    this.#reserved = 0;
    this.#names.clear();
    buffer.fill(0, 0, headerBytes);
    buffer.writeUInt16BE(id, 0);
    buffer.writeUInt16BE(word, 2);
    this.#at = headerBytes;
    if (question === undefined) return;
    buffer.writeUInt16BE(1, 4);
    buffer.set(question.octets, this.#at);
    let at = this.#at;
    for (let index = 0; index < question.labels.length; index += 1) {
      this.#names.set(question.labels.slice(index).join('.'), at);
      at += 1 + (buffer[at] ?? 0);
    }
    this.#at += question.octets.length;
  }

  /** A question of our own, as the first thing after `start`. */
  question(name: string, type: number): void {
    this.#buffer.writeUInt16BE(1, 4);
    this.#name(name);
    this.#u16(type);
    this.#u16(classes.in);
  }

  /** Sets further bits of the second word of the header. */
  flag(bits: number): void {
    this.#buffer.writeUInt16BE(this.#buffer.readUInt16BE(2) | bits, 2);
  }

  /** Keeps room for what must follow the records. */
  reserve(octets: number): void {
    this.#reserved = octets;
  }

  /** Whether there was room. */
  name(section: Section, owner: string, type: number, ttlSeconds: number, target: string): boolean {
    return this.#record(section, owner, type, ttlSeconds, () => this.#name(target));
  }

  startOfAuthority(section: Section, owner: string, ttlSeconds: number, soa: StartOfAuthority): boolean {
    return this.#record(section, owner, types.soa, ttlSeconds, () => {
      if (!this.#name(soa.primary) || !this.#name(soa.mailbox) || !this.#room(20)) return false;
      const numbers = [soa.serial, soa.refreshSeconds, soa.retrySeconds, soa.expireSeconds, soa.minimumSeconds];
      for (const number of numbers) this.#u32(number);
      return true;
    });
  }

  /** OPT of an answer (RFC 6891): what we take over UDP, the upper bits of the code, the client's DO bit. */
  edns(asked: Edns, udpBytes: number, rcode: number): void {
    this.#reserved = 0;
    this.#octet(0);
    this.#u16(types.opt);
    this.#u16(udpBytes);
    this.#octet(rcode >>> 4);
    this.#octet(0);
    this.#u16(asked.dnssecOk ? 0x8000 : 0);
    this.#u16(0);
    this.#count('additional');
  }

  /** An unsigned TSIG that says that the key is not known (RFC 8945, 5.2.1 and 5.3.2). */
  unknownKey(asked: ForeignSignature): void {
    this.#reserved = 0;
    this.#octets(asked.keyName);
    this.#u16(types.tsig);
    this.#u16(classes.any);
    this.#u32(0);
    this.#u16(asked.algorithm.length + 16);
    this.#octets(asked.algorithm);
    this.#octets(asked.timeSigned);
    this.#u16(asked.fudge);
    this.#u16(0);
    this.#u16(asked.originalId);
    this.#u16(tsigBadKey);
    this.#u16(0);
    this.#count('additional');
  }

  /** The message, in the buffer that `start` was given. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  #record(section: Section, owner: string, type: number, ttlSeconds: number, data: () => boolean): boolean {
    const start = this.#at;
    if (this.#name(owner) && this.#room(10)) {
      this.#u16(type);
      this.#u16(classes.in);
      this.#u32(ttlSeconds);
      const length = this.#at;
      this.#u16(0);
      if (data()) {
        this.#buffer.writeUInt16BE(this.#at - length - 2, length);
        this.#count(section);
        return true;
      }
    }
    this.#at = start;
    for (const [name, at] of this.#names) if (at >= start) this.#names.delete(name);
    return false;
  }

  /** False when it does not fit; throws for text that is no name, which whoever gave the zone is to prevent. */
  #name(name: string): boolean {
    let rest = name;
    while (rest !== '') {
      const known = this.#names.get(rest);
      if (known !== undefined) {
        if (!this.#room(2)) return false;
        this.#u16(0xc000 | known);
        return true;
      }
      const dot = rest.indexOf('.');
      const octets = labelOctets(dot < 0 ? rest : rest.slice(0, dot));
      if (octets === undefined) throw new RangeError(`not a name: ${name.slice(0, longestName)}`);
      if (!this.#room(1 + octets.length)) return false;
      if (this.#at <= farthestPointer) this.#names.set(rest, this.#at);
      this.#octet(octets.length);
      this.#octets(octets);
      rest = dot < 0 ? '' : rest.slice(dot + 1);
    }
    if (!this.#room(1)) return false;
    this.#octet(0);
    return true;
  }

  #room(octets: number): boolean {
    return this.#at + octets <= this.#limit - this.#reserved;
  }

  #count(section: Section): void {
    const at = sections[section];
    this.#buffer.writeUInt16BE(this.#buffer.readUInt16BE(at) + 1, at);
  }

  #octet(value: number): void {
    this.#buffer[this.#at] = value;
    this.#at += 1;
  }

  #u16(value: number): void {
    this.#at = this.#buffer.writeUInt16BE(value, this.#at);
  }

  #u32(value: number): void {
    this.#at = this.#buffer.writeUInt32BE(value, this.#at);
  }

  #octets(octets: Uint8Array): void {
    this.#buffer.set(octets, this.#at);
    this.#at += octets.length;
  }
}

/** What `edns` writes. */
export const ednsOctets = 11;

/** What `unknownKey` writes. */
export function unknownKeyOctets(asked: ForeignSignature): number {
  return asked.keyName.length + asked.algorithm.length + 26;
}
