/**
 * Owns flows that lasted longer than a slot: what they had is a rate for as long as they lasted, from when they were reported on, never
 * more than they had in as much time (decision 0127). A row for each destination and vector holds the rates of all its flows together;
 * two wheels, one of slots and one of turns of it, hold by how much they sink when. Adding is constant time, a slot costs as much as
 * there are destinations with a rate.
 *
 * Exact in sum: a rate is rounded down to 1/4096, which doubles hold, add and subtract without error as long as a row stays
 * below 2^41 a slot (of octets 70 Tbit/s), which is why no record may lift it above; what is left over counts at once.
 */
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { KeyTable, longer } from './key-table.ts';

/** 32 minutes: the longest active timeout that exporters come with is half an hour, and some look a little late. */
export const LONGEST_SPREAD_SLOTS = 7_680;
/** Of a flow that there is no room for, what it had in so many slots counts at once. */
const unspreadSlots = 4;
/** 65 536 destinations (32 + 28 octets each, 4 MB), 1 048 576 ends (36 octets each, 36 MB): reached only when in use. */
const mostRows = 1 << 16;
const mostEnds = 1 << 20;
const firstEnds = 1 << 10;
const parts = 4096;
const mostRate = 2 ** 41;
const wheelBits = 8;
const wheelSlots = 1 << wheelBits;
/** Turns of the wheel that are held apart, more than `LONGEST_SPREAD_SLOTS` has. */
const turns = 32;
const none = -1;

/** What became of a flow: it counts, less of it than it had, or nothing. */
export type Spreading = 'whole' | 'cut' | 'refused';

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
  /** Flows that there was no room for: a second of them counted at once. */
  unspread = 0;
  readonly #keys: KeyTable;
  /** By row: a slot's worth of packets, octets and samples. */
  #rates = new Float64Array(0);
  #flows = new Int32Array(0);
  /** By end of a flow: its rates, its slot, its row and the next end in the same slot or turn. */
  #endRates = new Float64Array(firstEnds * 3);
  #endSlots = new Int32Array(firstEnds);
  #endRows = new Int32Array(firstEnds);
  #endNext = new Int32Array(firstEnds);
  #endsUsed = 0;
  #freeEnd = none;
  readonly #wheel = new Int32Array(wheelSlots).fill(none);
  readonly #turns = new Int32Array(turns).fill(none);
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
    return this.#keys.octets + this.#keys.capacity * 28 + this.#endRows.length * 36;
  }

  /**
   * Amounts below 2^53. Hands what counts in the present slot to `toSlot`. A flow that lasted longer than `LONGEST_SPREAD_SLOTS` has
   * its rate for so long and is `cut`; one that would be too much for a row to stay exact is `refused`.
   */
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
  ): Spreading {
    const lasted = Math.max(1, Math.ceil(durationMilliseconds / SLOT_MILLISECONDS));
    const packetRate = Math.floor((packets * parts) / lasted) / parts;
    const byteRate = Math.floor((bytes * parts) / lasted) / parts;
    const sampleRate = Math.floor((samples * parts) / lasted) / parts;
    if (packetRate > mostRate || byteRate > mostRate) return 'refused';
    if (lasted === 1 || (packetRate === 0 && byteRate === 0)) {
      toSlot(a, b, c, d, tag, packets, bytes, samples);
      return 'whole';
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
      const part = Math.min(1, unspreadSlots / lasted);
      toSlot(a, b, c, d, tag, packets * part, bytes * part, samples * part);
      return part < 1 ? 'cut' : 'whole';
    }
    const rates = this.#rates;
    if ((rates[row * 3] as number) + packetRate > mostRate || (rates[row * 3 + 1] as number) + byteRate > mostRate) {
      this.#releaseEnd(end);
      return 'refused';
    }
    this.#change(row, packetRate, byteRate, sampleRate);
    this.#flows[row] = (this.#flows[row] as number) + 1;
    this.#endRates[end * 3] = packetRate;
    this.#endRates[end * 3 + 1] = byteRate;
    this.#endRates[end * 3 + 2] = sampleRate;
    this.#endRows[end] = row;
    const slots = Math.min(lasted, LONGEST_SPREAD_SLOTS);
    this.#endSlots[end] = this.#slot + slots;
    if (slots < wheelSlots) this.#enter(this.#wheel, (this.#slot + slots) % wheelSlots, end);
    else this.#enter(this.#turns, ((this.#slot + slots) >> wheelBits) % turns, end);
    if (slots < lasted) {
      toSlot(a, b, c, d, tag, packetRate, byteRate, sampleRate);
      return 'cut';
    }
    const later = slots - 1;
    toSlot(a, b, c, d, tag, packets - packetRate * later, bytes - byteRate * later, samples - sampleRate * later);
    return 'whole';
  }

  /** A new slot begins: rates that are over end, the others count in it. */
  nextSlot(toSlot: AddToSlot): void {
    this.#slot = (this.#slot + 1) & 0x3fffffff;
    const at = this.#slot % wheelSlots;
    if (at === 0) this.#turn();
    let end = this.#wheel[at] as number;
    this.#wheel[at] = none;
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

  /** The wheel begins anew: what ends in this turn goes to its slot. */
  #turn(): void {
    const turn = (this.#slot >> wheelBits) % turns;
    let end = this.#turns[turn] as number;
    this.#turns[turn] = none;
    while (end !== none) {
      const next = this.#endNext[end] as number;
      this.#enter(this.#wheel, (this.#endSlots[end] as number) % wheelSlots, end);
      end = next;
    }
  }

  #enter(wheel: Int32Array, at: number, end: number): void {
    this.#endNext[end] = wheel[at] as number;
    wheel[at] = end;
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
      this.#endSlots = longer(this.#endSlots, new Int32Array(room));
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
