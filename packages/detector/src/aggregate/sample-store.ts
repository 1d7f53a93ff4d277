/**
 * Owns recent sampled packets of protected destinations: of the last fifteen minutes, at most 2 000 of one destination, and no more
 * octets in all than it was given. What it holds of one destination thins out with age: as long as there is room all that is offered
 * is kept; then a few a slot take the places of others picked at random. Where there is no room at all, only so many a slot are taken
 * that what is held lasts for some minutes, whichever of those that are offered, and for each the oldest of a few picked at random goes. Memory is taken as it is used, 4 096 packets at a time, and never more.
 */
import type { Prefix } from '@levee/core/net/prefix.ts';
import { maskedWord, wordsOf } from './address-words.ts';
import { KeyTable, longer } from './key-table.ts';

export const SAMPLE_AGE_MILLISECONDS = 15 * 60_000;
export const MOST_OF_ONE = 2_000;
const headerOctets = 128;
const chunkBits = 12;
const chunkEntries = 1 << chunkBits;
/** Of one packet, its place in the list of its destination included. */
export const OCTETS_OF_SAMPLE = headerOctets + 56;
const mostDestinations = 1 << 17;
/** New ones a slot of a destination that has all it may have: with 2 000 of them, half are older than three minutes. */
const newOnesOfFull = 2;
const candidates = 4;
/** Where there is no room, what is held is renewed so many times in the time that packets are kept. */
const renewals = 4;
/** A round over all that is held takes as long as packets are kept. */
const slotsOfRound = SAMPLE_AGE_MILLISECONDS / 250;
const none = -1;

class Chunk {
  readonly headers = new Uint8Array(chunkEntries * headerOctets);
  readonly times = new Float64Array(chunkEntries);
  readonly scales = new Float64Array(chunkEntries);
  readonly interfaces = new Float64Array(chunkEntries);
  readonly lengths = new Uint32Array(chunkEntries);
  readonly exporters = new Int32Array(chunkEntries);
  readonly headerLengths = new Uint8Array(chunkEntries);
  /** Row of the destination, and the place in its list; of a free one the next free. */
  readonly owners = new Int32Array(chunkEntries).fill(none);
  readonly places = new Int32Array(chunkEntries);
}

/** A sampled packet as it is offered; `header` is copied. */
export interface OfferedSample {
  readonly header: Uint8Array | undefined;
  readonly headerStart: number;
  readonly headerLength: number;
  readonly bytes: number;
  readonly inputInterface: number;
}

export interface HeldSample {
  readonly atMs: number;
  readonly scale: number;
  readonly exporter: number;
  /** -1: not told. */
  readonly inputInterface: number;
  readonly length: number;
  readonly header: Uint8Array;
}

export class SampleStore {
  readonly #chunks: Chunk[] = [];
  readonly #most: number;
  readonly #random: () => number;
  readonly #destinations: KeyTable;
  #lists: (Int32Array | undefined)[] = [];
  #counts = new Int32Array(0);
  /** By destination: the slot in which one was last taken, and how many in it. */
  #lastSlots = new Float64Array(0);
  #takenInSlot = new Int32Array(0);
  #used = 0;
  #free = none;
  #held = 0;
  #slot = 0;
  #hand = 0;
  #offered = 0;
  #offeredBefore = 0;

  /** `octets`: in all. `random`: 0 … 1, 1 excluded. */
  constructor(octets: number, random: () => number = Math.random) {
    this.#most = Math.max(1, Math.floor(octets / OCTETS_OF_SAMPLE / chunkEntries)) * chunkEntries;
    this.#random = random;
    this.#destinations = new KeyTable(mostDestinations, (capacity) => {
      this.#counts = longer(this.#counts, new Int32Array(capacity));
      this.#lastSlots = longer(this.#lastSlots, new Float64Array(capacity));
      this.#takenInSlot = longer(this.#takenInSlot, new Int32Array(capacity));
    });
  }

  get held(): number {
    return this.#held;
  }

  get octets(): number {
    return this.#chunks.length * chunkEntries * OCTETS_OF_SAMPLE + this.#destinations.capacity * 48;
  }

  /** The destination is four words and 4 or 6. `isHot`: taken also where there is no room. */
  offer(
    a: number,
    b: number,
    c: number,
    d: number,
    family: number,
    sample: OfferedSample,
    scale: number,
    exporter: number,
    nowMs: number,
    isHot: boolean,
  ): void {
    const { header, headerStart } = sample;
    if (header === undefined || (!this.#isWelcome() && !isHot)) return;
    let owner = this.#destinations.find(a, b, c, d, family);
    let entry = none;
    if (owner >= 0 && this.#counts[owner] === MOST_OF_ONE) {
      if (this.#lastSlots[owner] !== this.#slot) {
        this.#lastSlots[owner] = this.#slot;
        this.#takenInSlot[owner] = 0;
      }
      if ((this.#takenInSlot[owner] as number) >= newOnesOfFull) return;
      this.#takenInSlot[owner] = (this.#takenInSlot[owner] as number) + 1;
      entry = (this.#lists[owner] as Int32Array)[Math.floor(this.#random() * MOST_OF_ONE)] as number;
    } else {
      entry = this.#newEntry();
      // Making room may have taken the last packet of this destination, or of another whose row is now free.
      owner = this.#destinations.find(a, b, c, d, family);
      if (owner < 0) owner = this.#addDestination(a, b, c, d, family);
      if (owner < 0) {
        this.#release(entry);
        return;
      }
      this.#append(owner, entry);
    }
    const chunk = this.#chunks[entry >> chunkBits] as Chunk;
    const at = entry & (chunkEntries - 1);
    const length = Math.min(sample.headerLength, headerOctets);
    const to = at * headerOctets;
    for (let i = 0; i < length; i++) chunk.headers[to + i] = header[headerStart + i] as number;
    chunk.headerLengths[at] = length;
    chunk.times[at] = nowMs;
    chunk.scales[at] = scale;
    chunk.interfaces[at] = sample.inputInterface;
    chunk.lengths[at] = sample.bytes;
    chunk.exporters[at] = exporter;
  }

  /** A slot is over: a part of what is held is looked through for what is too old. */
  endSlot(nowMs: number): void {
    this.#slot++;
    this.#offeredBefore = this.#offered;
    this.#offered = 0;
    const steps = Math.ceil(this.#used / slotsOfRound);
    for (let i = 0; i < steps; i++) {
      this.#hand = this.#hand + 1 < this.#used ? this.#hand + 1 : 0;
      const chunk = this.#chunks[this.#hand >> chunkBits] as Chunk;
      const at = this.#hand & (chunkEntries - 1);
      if (chunk.owners[at] !== none && (chunk.times[at] as number) < nowMs - SAMPLE_AGE_MILLISECONDS) {
        this.#drop(this.#hand);
      }
    }
  }

  /** Of the destinations in the prefix, since then: how many are held, and at most `most` of them, picked at random, in order of time. */
  collect(prefix: Prefix, sinceMs: number, nowMs: number, most: number): { held: number; samples: HeldSample[] } {
    const since = Math.max(sinceMs, nowMs - SAMPLE_AGE_MILLISECONDS);
    const picked: number[] = [];
    let held = 0;
    for (const owner of this.#ownersIn(prefix)) {
      const list = this.#lists[owner] as Int32Array;
      for (let i = 0; i < (this.#counts[owner] as number); i++) {
        const entry = list[i] as number;
        const chunk = this.#chunks[entry >> chunkBits] as Chunk;
        if ((chunk.times[entry & (chunkEntries - 1)] as number) < since) continue;
        held++;
        if (picked.length < most) picked.push(entry);
        else {
          const place = Math.floor(this.#random() * held);
          if (place < most) picked[place] = entry;
        }
      }
    }
    const samples = picked.map((entry) => this.#read(entry));
    return { held, samples: samples.sort((one, other) => one.atMs - other.atMs) };
  }

  #isWelcome(): boolean {
    this.#offered++;
    if (this.#free !== none || this.#used < this.#most) return true;
    const wanted = (this.#most * renewals) / slotsOfRound;
    return this.#random() * Math.max(this.#offered, this.#offeredBefore) < wanted;
  }

  *#ownersIn(prefix: Prefix): Generator<number> {
    const { words, tags, used } = this.#destinations;
    const wanted = wordsOf(prefix);
    for (let row = 0; row < used; row++) {
      if (tags[row] !== prefix.family) continue;
      const isIn = (word: number, index: number) =>
        maskedWord(words[row * 4 + index] as number, index, prefix.length) === word;
      if (wanted.every(isIn)) yield row;
    }
  }

  #read(entry: number): HeldSample {
    const chunk = this.#chunks[entry >> chunkBits] as Chunk;
    const at = entry & (chunkEntries - 1);
    const from = at * headerOctets;
    return {
      atMs: chunk.times[at] as number,
      scale: chunk.scales[at] as number,
      exporter: chunk.exporters[at] as number,
      inputInterface: chunk.interfaces[at] as number,
      length: chunk.lengths[at] as number,
      header: chunk.headers.slice(from, from + (chunk.headerLengths[at] as number)),
    };
  }

  #newEntry(): number {
    if (this.#free === none && this.#used === this.#most) this.#drop(this.#oldestOfSome());
    this.#held++;
    const free = this.#free;
    if (free !== none) {
      const chunk = this.#chunks[free >> chunkBits] as Chunk;
      this.#free = chunk.places[free & (chunkEntries - 1)] as number;
      return free;
    }
    if (this.#used >> chunkBits === this.#chunks.length) this.#chunks.push(new Chunk());
    return this.#used++;
  }

  /** Only where all are in use. */
  #oldestOfSome(): number {
    let found = none;
    let oldest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < candidates; i++) {
      const entry = Math.floor(this.#random() * this.#used);
      const time = (this.#chunks[entry >> chunkBits] as Chunk).times[entry & (chunkEntries - 1)] as number;
      if (time < oldest) {
        oldest = time;
        found = entry;
      }
    }
    return found;
  }

  #addDestination(a: number, b: number, c: number, d: number, family: number): number {
    const owner = this.#destinations.add(a, b, c, d, family);
    if (owner >= 0) {
      this.#counts[owner] = 0;
      this.#lastSlots[owner] = none;
    }
    return owner;
  }

  #append(owner: number, entry: number): void {
    const count = this.#counts[owner] as number;
    let list = this.#lists[owner];
    if (list === undefined || list.length === count) {
      const room = new Int32Array(Math.min(MOST_OF_ONE, Math.max(4, count * 2)));
      list = list === undefined ? room : longer(list, room);
      this.#lists[owner] = list;
    }
    list[count] = entry;
    this.#counts[owner] = count + 1;
    const chunk = this.#chunks[entry >> chunkBits] as Chunk;
    chunk.owners[entry & (chunkEntries - 1)] = owner;
    chunk.places[entry & (chunkEntries - 1)] = count;
  }

  #drop(entry: number): void {
    const chunk = this.#chunks[entry >> chunkBits] as Chunk;
    const at = entry & (chunkEntries - 1);
    const owner = chunk.owners[at] as number;
    const place = chunk.places[at] as number;
    const list = this.#lists[owner] as Int32Array;
    const count = (this.#counts[owner] as number) - 1;
    this.#counts[owner] = count;
    const moved = list[count] as number;
    list[place] = moved;
    (this.#chunks[moved >> chunkBits] as Chunk).places[moved & (chunkEntries - 1)] = place;
    if (count === 0) {
      this.#lists[owner] = undefined;
      this.#destinations.remove(owner);
    }
    this.#release(entry);
  }

  #release(entry: number): void {
    const chunk = this.#chunks[entry >> chunkBits] as Chunk;
    const at = entry & (chunkEntries - 1);
    chunk.owners[at] = none;
    chunk.places[at] = this.#free;
    this.#free = entry;
    this.#held--;
  }
}
