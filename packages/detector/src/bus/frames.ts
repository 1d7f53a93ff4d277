/**
 * Owns messages that are longer than the server takes at once: cut into frames, and put together again. What is never completed
 * is bounded: by how many, by how much, and by time. Knows no message.
 */
import { Malformed, Reader, Writer } from './octets.ts';

/** Sender, number, part, parts. */
const headOctets = 8 + 4 + 2 + 2;
const mostParts = 256;
const mostWaiting = 64;
const mostOctets = 64 << 20;
const patienceMilliseconds = 5_000;

/** Cuts one sender's messages. */
export class FrameWriter {
  readonly #sender: Uint8Array;
  #number = 0;

  /** `sender`: eight octets that no other sender has. */
  constructor(sender: Uint8Array) {
    this.#sender = sender.subarray(0, 8);
  }

  /** Undefined: it is longer than can be sent at all. `most`: octets of a frame. */
  cut(message: Uint8Array, most: number): Uint8Array[] | undefined {
    const room = most - headOctets;
    const parts = Math.max(1, Math.ceil(message.length / room));
    if (room <= 0 || parts > mostParts) return undefined;
    this.#number = (this.#number + 1) >>> 0;
    const frames: Uint8Array[] = [];
    const writer = new Writer();
    for (let part = 0; part < parts; part++) {
      writer.octets(this.#sender);
      writer.u32(this.#number);
      writer.u16(part);
      writer.u16(parts);
      writer.octets(message.subarray(part * room, (part + 1) * room));
      frames.push(writer.take());
    }
    return frames;
  }
}

interface Waiting {
  readonly sinceMs: number;
  readonly parts: (Uint8Array | undefined)[];
  missing: number;
  octets: number;
}

export class FrameReader {
  /** Messages of which something never came, since the start. */
  incomplete = 0;
  readonly #waiting = new Map<string, Waiting>();
  #octets = 0;

  /** The message that the frame completes, undefined where there is none yet, false where it is no frame. */
  take(frame: Uint8Array, nowMs: number): Uint8Array | undefined | false {
    let head: { sender: Uint8Array; number: number; part: number; parts: number; body: Uint8Array };
    try {
      const reader = new Reader(frame);
      const sender = reader.octets(8);
      head = {
        sender,
        number: reader.u32(),
        part: reader.u16(),
        parts: reader.u16(),
        body: reader.octets(reader.left),
      };
    } catch (error) {
      if (error instanceof Malformed) return false;
      throw error;
    }
    const { part, parts, body } = head;
    if (parts === 0 || parts > mostParts || part >= parts) return false;
    if (parts === 1) return body;
    const key = `${Buffer.from(head.sender).toString('hex')} ${head.number}`;
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#makeRoom(body.length, nowMs);
      waiting = {
        sinceMs: nowMs,
        parts: new Array<Uint8Array | undefined>(parts).fill(undefined),
        missing: parts,
        octets: 0,
      };
      this.#waiting.set(key, waiting);
    }
    if (waiting.parts.length !== parts || waiting.parts[part] !== undefined) return false;
    if (this.#octets + body.length > mostOctets) {
      this.#drop(key, waiting);
      return undefined;
    }
    // The client's buffer is its own again after the call.
    waiting.parts[part] = body.slice();
    waiting.missing--;
    waiting.octets += body.length;
    this.#octets += body.length;
    if (waiting.missing > 0) return undefined;
    this.#waiting.delete(key);
    this.#octets -= waiting.octets;
    return Buffer.concat(waiting.parts as Uint8Array[]);
  }

  #makeRoom(more: number, nowMs: number): void {
    for (const [key, waiting] of this.#waiting) {
      const isOver = nowMs - waiting.sinceMs > patienceMilliseconds;
      if (!isOver && this.#waiting.size < mostWaiting && this.#octets + more <= mostOctets) return;
      this.#drop(key, waiting);
    }
  }

  #drop(key: string, waiting: Waiting): void {
    this.#waiting.delete(key);
    this.#octets -= waiting.octets;
    this.incomplete++;
  }
}
