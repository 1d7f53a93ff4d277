/**
 * Owns flows that lasted longer than a slot: what they had is a rate for as long as they lasted, from when they were reported on (the
 * agreement in the plan), at most a minute. A row for each destination and vector holds the rates of all its flows together; a wheel
 * of slots holds by how much they sink when. Adding is constant time, a slot costs as much as there are destinations with a rate.
 *
 * Exact in sum: a rate is rounded down to 1/4096, which doubles hold, add and subtract without error (below
 * 2^41 octets a slot, 70 Tbit/s); what is left over counts at once.
 */
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { KeyTable, longer } from './key-table.ts';

export const LONGEST_SPREAD_SLOTS = 240;
/** 65 536 destinations (32 + 28 octets each, 4 MB), 1 048 576 ends (32 octets each, 32 MB): reached only when in use. */
const mostRows = 1 << 16;
const mostEnds = 1 << 20;
const firstEnds = 1 << 10;
const parts = 4096;
const wheelSlots = 256;
const none = -1;

/** Where what belongs to the present slot goes. */
export type AddToSlot = (
  a: number,
  b: number,
  c: number,
  d: number,
  tag: number,
  packets: number,
  bytes: number,
  samples: number,
) => unknown;

export class SpreadFlows {
  /** Flows that there was no room for: they counted at once. */
  unspread = 0;
  readonly #keys: KeyTable;
  /** By row: a slot's worth of packets, octets and samples. */
  #rates = new Float64Array(0);
  #flows = new Int32Array(0);
  /** By end of a flow: its rates, its row and the next end in the same slot. */
  #endRates = new Float64Array(firstEnds * 3);
  #endRows = new Int32Array(firstEnds);
  #endNext = new Int32Array(firstEnds);
  #endsUsed = 0;
  #freeEnd = none;
  readonly #wheel = new Int32Array(wheelSlots).fill(none);
  #slot = 0;
  readonly #mostEnds: number;

  constructor(rows = mostRows, ends = mostEnds) {
    this.#mostEnds = ends;
    this.#keys = new KeyTable(rows, (capacity) => {
      this.#rates = longer(this.#rates, new Float64Array(capacity * 3));
      this.#flows = longer(this.#flows, new Int32Array(capacity));
    });
  }

  /** Destinations and vectors that have a rate. */
  get size(): number {
    return this.#keys.size;
  }

  get octets(): number {
    return this.#keys.octets + this.#keys.capacity * 28 + this.#endRows.length * 32;
  }

  /** Whole numbers below 2^41. Hands what counts in the present slot to `toSlot`. */
  add(
    a: number,
    b: number,
    c: number,
    d: number,
    tag: number,
    packets: number,
    bytes: number,
    samples: number,
    durationMilliseconds: number,
    toSlot: AddToSlot,
  ): void {
    const slots = Math.min(LONGEST_SPREAD_SLOTS, Math.ceil(durationMilliseconds / SLOT_MILLISECONDS));
    if (slots <= 1) {
      toSlot(a, b, c, d, tag, packets, bytes, samples);
      return;
    }
    const end = this.#newEnd();
    let row = end === none ? none : this.#keys.find(a, b, c, d, tag);
    if (row === none && end !== none) {
      row = this.#keys.add(a, b, c, d, tag);
      if (row !== none) {
        this.#rates.fill(0, row * 3, row * 3 + 3);
        this.#flows[row] = 0;
      }
    }
    if (row === none) {
      if (end !== none) this.#releaseEnd(end);
      this.unspread++;
      toSlot(a, b, c, d, tag, packets, bytes, samples);
      return;
    }
    const packetRate = Math.floor((packets * parts) / slots) / parts;
    const byteRate = Math.floor((bytes * parts) / slots) / parts;
    const sampleRate = Math.floor((samples * parts) / slots) / parts;
    this.#change(row, packetRate, byteRate, sampleRate);
    this.#flows[row] = (this.#flows[row] as number) + 1;
    this.#endRates[end * 3] = packetRate;
    this.#endRates[end * 3 + 1] = byteRate;
    this.#endRates[end * 3 + 2] = sampleRate;
    this.#endRows[end] = row;
    const at = (this.#slot + slots) % wheelSlots;
    this.#endNext[end] = this.#wheel[at] as number;
    this.#wheel[at] = end;
    const later = slots - 1;
    toSlot(a, b, c, d, tag, packets - packetRate * later, bytes - byteRate * later, samples - sampleRate * later);
  }

  /** A new slot begins: rates that are over end, the others count in it. */
  nextSlot(toSlot: AddToSlot): void {
    this.#slot = (this.#slot + 1) % wheelSlots;
    let end = this.#wheel[this.#slot] as number;
    this.#wheel[this.#slot] = none;
    while (end !== none) {
      const next = this.#endNext[end] as number;
      const row = this.#endRows[end] as number;
      const packets = this.#endRates[end * 3] as number;
      const bytes = this.#endRates[end * 3 + 1] as number;
      const samples = this.#endRates[end * 3 + 2] as number;
      this.#change(row, -packets, -bytes, -samples);
      this.#flows[row] = (this.#flows[row] as number) - 1;
      if (this.#flows[row] === 0) this.#keys.remove(row);
      this.#releaseEnd(end);
      end = next;
    }
    const { words, tags, used } = this.#keys;
    for (let row = 0; row < used; row++) {
      const tag = tags[row] as number;
      if (tag < 0) continue;
      toSlot(
        words[row * 4] as number,
        words[row * 4 + 1] as number,
        words[row * 4 + 2] as number,
        words[row * 4 + 3] as number,
        tag,
        this.#rates[row * 3] as number,
        this.#rates[row * 3 + 1] as number,
        this.#rates[row * 3 + 2] as number,
      );
    }
  }

  #change(row: number, packets: number, bytes: number, samples: number): void {
    const rates = this.#rates;
    rates[row * 3] = (rates[row * 3] as number) + packets;
    rates[row * 3 + 1] = (rates[row * 3 + 1] as number) + bytes;
    rates[row * 3 + 2] = (rates[row * 3 + 2] as number) + samples;
  }

  #newEnd(): number {
    const free = this.#freeEnd;
    if (free !== none) {
      this.#freeEnd = this.#endNext[free] as number;
      return free;
    }
    if (this.#endsUsed === this.#mostEnds) return none;
    if (this.#endsUsed === this.#endRows.length) {
      const room = Math.min(this.#mostEnds, this.#endsUsed * 2);
      this.#endRates = longer(this.#endRates, new Float64Array(room * 3));
      this.#endRows = longer(this.#endRows, new Int32Array(room));
      this.#endNext = longer(this.#endNext, new Int32Array(room));
    }
    return this.#endsUsed++;
  }

  #releaseEnd(end: number): void {
    this.#endNext[end] = this.#freeEnd;
    this.#freeEnd = end;
  }
}
