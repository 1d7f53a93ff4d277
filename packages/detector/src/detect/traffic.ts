/**
 * Owns the last second of all protected destinations: for each address and aggregate, for each vector, packets, bytes and
 * samples of the last four slots. Rows that nobody touched for a second go; those that are pinned stay. Never judges.
 *
 * Its cost goes by what is touched, never by what is held: each slot remembers what it touched, and what was last touched some
 * slots ago is let go from there. When it is nearly full, destinations with a sample or two are no longer taken up: 12 samples in
 * four slots are three in one of them, so that what could be judged at all still is.
 */

import { LEAST_SAMPLES } from '@levee/core/detection/judge.ts';
import { TOTAL } from '@levee/core/detection/vector.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { KeyTable, longer } from '../aggregate/key-table.ts';
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { Pool } from './pool.ts';

/** A second; a power of two. */
export const WINDOW_SLOTS = 1000 / SLOT_MILLISECONDS;
const slotMask = WINDOW_SLOTS - 1;
/** Amounts of one key: packets, bytes and samples of each slot of the window. */
const width = 3 * WINDOW_SLOTS;
const bytesAt = WINDOW_SLOTS;
const samplesAt = 2 * WINDOW_SLOTS;

/** Slots after which an untouched row goes: the window, and one for what comes late. */
const idleSlots = WINDOW_SLOTS + 1;
/** As few samples in one slot cannot become an attack without more in another. */
const fewSamples = Math.ceil(LEAST_SAMPLES / WINDOW_SLOTS);

const none = -1;

export interface TrafficLimits {
  /** Addresses and aggregates; a power of two. */
  readonly destinations: number;
  /** Vectors of them; a power of two. */
  readonly keys: number;
}

export const defaultLimits: TrafficLimits = { destinations: 1 << 18, keys: 1 << 20 };

/** What a window holds, in one object that is filled anew. */
export class WindowSums {
  packets = 0;
  bytes = 0;
  samples = 0;
}

export class Traffic {
  readonly table: KeyTable;
  /** By destination. */
  aggregates!: Int32Array;
  /** What `place` set: the policy's number. */
  policies!: Int32Array;
  /** The attack's number on this very destination, or -1. */
  attacks!: Int32Array;
  firstKeys!: Int32Array;
  #heads!: Int32Array;
  #touched!: Int32Array;
  /** Members of an aggregate, and whoever else wants it to stay. */
  #pins!: Int32Array;
  /** By key. */
  vectors!: Uint8Array;
  nextKeys!: Int32Array;
  /** Judgements in a row at which it was too much. */
  streaks!: Uint8Array;
  /** The baseline's number, or -1. */
  baselines!: Int32Array;
  #amounts!: Float64Array;

  /** Rows for which there was no room. */
  untracked = 0;
  /** Rows of what is not protected, or not by what they tell of. */
  unplaced = 0;
  late = 0;
  /** The slot that is counted now. */
  slot = 0;
  readonly #keys: Pool;
  readonly #limits: TrafficLimits;
  readonly #place: (destination: number) => boolean;
  readonly #lists: number[][] = Array.from({ length: idleSlots + 1 }, () => []);

  /** `place` gives a new destination its aggregate and policy; false: it is not to be tracked. */
  constructor(limits: TrafficLimits, place: (destination: number) => boolean) {
    this.#limits = limits;
    this.#place = place;
    this.table = new KeyTable(limits.destinations, (capacity) => this.#growDestinations(capacity));
    this.#keys = new Pool(limits.keys, (capacity) => this.#growKeys(capacity));
  }

  /** Destinations that were touched since the last slot was begun, each once. */
  get touched(): readonly number[] {
    return this.#lists[this.slot % this.#lists.length] as number[];
  }

  get octets(): number {
    return this.table.octets + this.#heads.length * 28 + this.#amounts.length * 8 + this.vectors.length * 10;
  }

  isAggregate(destination: number): boolean {
    return this.aggregates[destination] === destination;
  }

  /** Opens the next slot, and lets go what has not been touched for long. */
  begin(slot: number): void {
    // A gap longer than all lists: each is emptied once.
    for (let next = Math.max(this.slot + 1, slot - this.#lists.length + 1); next <= slot; next++) {
      this.slot = next;
      const list = this.#lists[next % this.#lists.length] as number[];
      const old = list.splice(0);
      for (const destination of old) {
        if ((this.#touched[destination] as number) > next - this.#lists.length) continue;
        if (this.#pins[destination] === 0 && this.table.tags[destination] !== none) this.#remove(destination);
      }
    }
  }

  find(a: number, b: number, c: number, d: number, tag: number): number {
    return this.table.find(a, b, c, d, tag);
  }

  /** The row of a destination, made where there is none; -1: not tracked. */
  ensure(a: number, b: number, c: number, d: number, tag: number): number {
    const found = this.table.find(a, b, c, d, tag);
    if (found !== none) return found;
    const row = this.table.add(a, b, c, d, tag);
    if (row === none) return none;
    this.firstKeys[row] = none;
    this.attacks[row] = none;
    this.aggregates[row] = none;
    this.policies[row] = none;
    this.#pins[row] = 0;
    this.#heads[row] = this.slot;
    this.#touched[row] = none;
    if (!this.#place(row)) {
      this.unplaced++;
      this.table.remove(row);
      return none;
    }
    const aggregate = this.aggregates[row] as number;
    if (aggregate !== none && aggregate !== row) this.pin(aggregate);
    this.touch(row);
    return row;
  }

  /** Counts traffic of an address, and for its aggregate, for each vector and in all. `slot` is this one or one before. */
  add(
    a: number,
    b: number,
    c: number,
    d: number,
    tag: number,
    vector: number,
    packets: number,
    bytes: number,
    samples: number,
    slot: number,
  ): void {
    if (slot <= this.slot - WINDOW_SLOTS) {
      this.late++;
      return;
    }
    let row = this.table.find(a, b, c, d, tag);
    if (row === none) {
      if (this.#isNearlyFull() && samples < fewSamples) {
        this.untracked++;
        return;
      }
      const { unplaced } = this;
      row = this.ensure(a, b, c, d, tag);
      if (row === none) {
        if (unplaced === this.unplaced) this.untracked++;
        return;
      }
    }
    this.#count(row, vector, packets, bytes, samples, slot);
    const aggregate = this.aggregates[row] as number;
    if (aggregate !== none && aggregate !== row && this.attacks[row] === none) {
      this.#count(aggregate, vector, packets, bytes, samples, slot);
    }
  }

  /** The key of a destination's vector, or -1. */
  keyOf(destination: number, vector: number): number {
    let key = this.firstKeys[destination] as number;
    while (key !== none && this.vectors[key] !== vector) key = this.nextKeys[key] as number;
    return key;
  }

  /** As `keyOf`, made where there is none; -1 when there is no room. */
  ensureKey(destination: number, vector: number): number {
    const found = this.keyOf(destination, vector);
    if (found !== none) return found;
    const key = this.#keys.take();
    if (key === none) return none;
    this.vectors[key] = vector;
    this.streaks[key] = 0;
    this.baselines[key] = none;
    this.#amounts.fill(0, key * width, (key + 1) * width);
    this.nextKeys[key] = this.firstKeys[destination] as number;
    this.firstKeys[destination] = key;
    return key;
  }

  /** The last four slots up to this one. `align` has been called for its destination. */
  sum(key: number, into: WindowSums): WindowSums {
    const amounts = this.#amounts;
    const at = key * width;
    into.packets = windowOf(amounts, at);
    into.bytes = windowOf(amounts, at + bytesAt);
    into.samples = windowOf(amounts, at + samplesAt);
    return into;
  }

  /** One slot of the window. `align` has been called for its destination. */
  at(key: number, slot: number, into: WindowSums): WindowSums {
    const at = key * width + (slot & slotMask);
    into.packets = this.#amounts[at] as number;
    into.bytes = this.#amounts[at + bytesAt] as number;
    into.samples = this.#amounts[at + samplesAt] as number;
    return into;
  }

  /** Empties of the destination's windows what has left them. */
  align(destination: number): void {
    const ahead = this.slot - (this.#heads[destination] as number);
    if (ahead <= 0) return;
    this.#heads[destination] = this.slot;
    const amounts = this.#amounts;
    for (let key = this.firstKeys[destination] as number; key !== none; key = this.nextKeys[key] as number) {
      const at = key * width;
      if (ahead >= WINDOW_SLOTS) {
        amounts.fill(0, at, at + width);
        continue;
      }
      for (let slot = this.slot - ahead + 1; slot <= this.slot; slot++) {
        const place = at + (slot & slotMask);
        amounts[place] = 0;
        amounts[place + bytesAt] = 0;
        amounts[place + samplesAt] = 0;
      }
    }
  }

  /** Takes what an address has had in the window from its aggregate: it is part of an attack of its own from now on. */
  takeFromAggregate(destination: number): void {
    const aggregate = this.aggregates[destination] as number;
    if (aggregate === none || aggregate === destination) return;
    this.align(destination);
    this.align(aggregate);
    for (let key = this.firstKeys[destination] as number; key !== none; key = this.nextKeys[key] as number) {
      const from = this.keyOf(aggregate, this.vectors[key] as number);
      if (from === none) continue;
      for (let index = 0; index < width; index++) {
        const left = (this.#amounts[from * width + index] as number) - (this.#amounts[key * width + index] as number);
        this.#amounts[from * width + index] = Math.max(0, left);
      }
    }
  }

  /** Frees keys of the destination that have had nothing in the window. */
  dropIdleKeys(destination: number): void {
    let before = none;
    let key = this.firstKeys[destination] as number;
    while (key !== none) {
      const next = this.nextKeys[key] as number;
      if (this.baselines[key] === none && windowOf(this.#amounts, key * width + samplesAt) === 0) {
        if (before === none) this.firstKeys[destination] = next;
        else this.nextKeys[before] = next;
        this.#keys.give(key);
      } else {
        before = key;
      }
      key = next;
    }
  }

  /** It stays until it is unpinned as often. */
  pin(destination: number): void {
    this.#pins[destination] = (this.#pins[destination] as number) + 1;
  }

  unpin(destination: number): void {
    this.#pins[destination] = (this.#pins[destination] as number) - 1;
    // The next expiry that comes by decides.
    this.touch(destination);
  }

  touch(destination: number): void {
    if (this.#touched[destination] === this.slot) return;
    this.#touched[destination] = this.slot;
    (this.#lists[this.slot % this.#lists.length] as number[]).push(destination);
  }

  #count(row: number, vector: number, packets: number, bytes: number, samples: number, slot: number): void {
    this.align(row);
    this.touch(row);
    const key = this.ensureKey(row, vector);
    const all = this.ensureKey(row, TOTAL);
    if (key === none || all === none) {
      this.untracked++;
      return;
    }
    const place = slot & slotMask;
    this.#addTo(key * width + place, packets, bytes, samples);
    this.#addTo(all * width + place, packets, bytes, samples);
  }

  #addTo(place: number, packets: number, bytes: number, samples: number): void {
    const amounts = this.#amounts;
    amounts[place] = (amounts[place] as number) + packets;
    amounts[place + bytesAt] = (amounts[place + bytesAt] as number) + bytes;
    amounts[place + samplesAt] = (amounts[place + samplesAt] as number) + samples;
  }

  #remove(row: number): void {
    for (let key = this.firstKeys[row] as number; key !== none; ) {
      const next = this.nextKeys[key] as number;
      this.#keys.give(key);
      key = next;
    }
    const aggregate = this.aggregates[row] as number;
    this.table.remove(row);
    if (aggregate !== none && aggregate !== row) this.unpin(aggregate);
  }

  #isNearlyFull(): boolean {
    return this.table.size >= this.#limits.destinations * 0.75 || this.#keys.size >= this.#limits.keys * 0.75;
  }

  #growDestinations(capacity: number): void {
    const grow = (from: Int32Array | undefined) => {
      const to = new Int32Array(capacity);
      return from === undefined ? to : longer(from, to);
    };
    this.aggregates = grow(this.aggregates);
    this.policies = grow(this.policies);
    this.attacks = grow(this.attacks);
    this.firstKeys = grow(this.firstKeys);
    this.#heads = grow(this.#heads);
    this.#touched = grow(this.#touched);
    this.#pins = grow(this.#pins);
  }

  #growKeys(capacity: number): void {
    const grow = (from: Int32Array | undefined) => {
      const to = new Int32Array(capacity);
      return from === undefined ? to : longer(from, to);
    };
    const bytes = (from: Uint8Array | undefined) => {
      const to = new Uint8Array(capacity);
      return from === undefined ? to : longer(from, to);
    };
    this.nextKeys = grow(this.nextKeys);
    this.baselines = grow(this.baselines);
    this.vectors = bytes(this.vectors);
    this.streaks = bytes(this.streaks);
    const amounts = new Float64Array(capacity * width);
    this.#amounts = this.#amounts === undefined ? amounts : longer(this.#amounts, amounts);
  }
}

/** An address's tag, or a subnet's, in the table: the same words may begin both. */
export function tagOf(family: Family, length: number): number {
  return family | (length << 8);
}

export function familyOf(tag: number): Family {
  return (tag & 255) as Family;
}

export function lengthOf(tag: number): number {
  return tag >> 8;
}

function windowOf(amounts: Float64Array, at: number): number {
  let sum = 0;
  for (let slot = 0; slot < WINDOW_SLOTS; slot++) sum += amounts[at + slot] as number;
  return sum;
}
