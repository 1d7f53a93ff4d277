/**
 * Owns writing and reading values one behind the other. A reader never reads behind its end and never takes more than is there:
 * it throws `Malformed`, which whoever decodes a message catches.
 */

export class Malformed extends Error {}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export class Writer {
  #octets = new Uint8Array(1_024);
  #view = new DataView(this.#octets.buffer);
  #at = 0;

  u8(value: number): void {
    this.#room(1);
    this.#octets[this.#at++] = value;
  }

  u16(value: number): void {
    this.#room(2);
    this.#view.setUint16(this.#at, value);
    this.#at += 2;
  }

  u32(value: number): void {
    this.#room(4);
    this.#view.setUint32(this.#at, value);
    this.#at += 4;
  }

  f64(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  /** At most 255 octets of UTF-8; what is longer is cut. */
  text(value: string): void {
    const octets = encoder.encode(value).subarray(0, 255);
    this.u8(octets.length);
    this.octets(octets);
  }

  octets(octets: Uint8Array): void {
    this.#room(octets.length);
    this.#octets.set(octets, this.#at);
    this.#at += octets.length;
  }

  /** A copy of what was written; the writer begins anew. */
  take(): Uint8Array {
    const taken = this.#octets.slice(0, this.#at);
    this.#at = 0;
    return taken;
  }

  #room(more: number): void {
    if (this.#at + more <= this.#octets.length) return;
    const larger = new Uint8Array(Math.max(this.#octets.length * 2, this.#at + more));
    larger.set(this.#octets.subarray(0, this.#at));
    this.#octets = larger;
    this.#view = new DataView(larger.buffer);
  }
}

export class Reader {
  readonly #octets: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(octets: Uint8Array) {
    this.#octets = octets;
    this.#view = new DataView(octets.buffer, octets.byteOffset, octets.byteLength);
  }

  get left(): number {
    return this.#octets.length - this.#at;
  }

  u8(): number {
    return this.#octets[this.#take(1)] as number;
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** Neither negative nor infinite nor none. */
  amount(): number {
    const value = this.#view.getFloat64(this.#take(8));
    if (!(value >= 0 && value <= Number.MAX_VALUE)) throw new Malformed('a number that counts nothing');
    return value;
  }

  whole(): number {
    const value = this.amount();
    if (!Number.isSafeInteger(value)) throw new Malformed('a number that is not whole');
    return value;
  }

  text(): string {
    const octets = this.octets(this.u8());
    try {
      return decoder.decode(octets);
    } catch {
      throw new Malformed('text that is no UTF-8');
    }
  }

  /** A view, not a copy. */
  octets(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#octets.subarray(at, at + count);
  }

  end(): void {
    if (this.left !== 0) throw new Malformed(`${this.left} octets too many`);
  }

  #take(count: number): number {
    const at = this.#at;
    if (count > this.left) throw new Malformed('it is cut off');
    this.#at += count;
    return at;
  }
}
