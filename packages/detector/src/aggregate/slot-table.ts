/**
 * Owns the sums of the slot that is going on: a row for each destination and vector. Bounded: when there are too many destinations, the
 * one with the least gives its place and counts for its /24 or /64 from then on; when there are too many of those as well, what the
 * least had is counted as lost. So what has much traffic stays visible by itself, and a scan as a sum. Never knows time.
 */
import { AGGREGATE_ONLY } from '../bus/port.ts';
import { KeyTable, longer } from './key-table.ts';

/** Rows of addresses; with all columns 68 octets each, 9 MB. */
export const MOST_ROWS = 1 << 17;
/** Rows of aggregates of what did not fit. */
export const MOST_AGGREGATES = 1 << 14;

/** A tag is a vector, and this for IPv6. */
export const IPV6_TAG = 16;
const vectorMask = 15;
/** How many rows are looked at for the one that has the least. */
const candidates = 4;

export interface SlotColumns {
  readonly count: number;
  readonly families: Uint8Array;
  readonly addresses: Uint32Array;
  readonly vectors: Uint8Array;
  readonly packets: Float64Array;
  readonly bytes: Float64Array;
  readonly samples: Float64Array;
}

class Sums {
  packets = new Float64Array(0);
  bytes = new Float64Array(0);
  samples = new Float64Array(0);

  grow(capacity: number): void {
    this.packets = longer(this.packets, new Float64Array(capacity));
    this.bytes = longer(this.bytes, new Float64Array(capacity));
    this.samples = longer(this.samples, new Float64Array(capacity));
  }

  set(row: number, packets: number, bytes: number, samples: number): void {
    this.packets[row] = packets;
    this.bytes[row] = bytes;
    this.samples[row] = samples;
  }

  add(row: number, packets: number, bytes: number, samples: number): void {
    this.packets[row] = (this.packets[row] as number) + packets;
    this.bytes[row] = (this.bytes[row] as number) + bytes;
    this.samples[row] = (this.samples[row] as number) + samples;
  }
}

export class SlotTable {
  readonly keys: KeyTable;
  /** By row: the profile of the destination and that of its hot subnet, + 1; 0: none. The owner of profiles sets them. */
  profiles = new Int32Array(0);
  subnetProfiles = new Int32Array(0);
  /** By row: records in this slot. */
  records = new Int32Array(0);
  /** Sampled packets that are in no row, since the start. */
  lostSamples = 0;
  readonly #sums = new Sums();
  readonly #aggregates: KeyTable;
  readonly #aggregateSums = new Sums();
  readonly #admitted: (row: number) => void;
  #hand = 0;
  #aggregateHand = 0;

  /** `admitted`: a row has a key that it did not have before. */
  constructor(admitted: (row: number) => void, mostRows = MOST_ROWS, mostAggregates = MOST_AGGREGATES) {
    this.#admitted = admitted;
    this.keys = new KeyTable(mostRows, (capacity) => {
      this.#sums.grow(capacity);
      this.profiles = longer(this.profiles, new Int32Array(capacity));
      this.subnetProfiles = longer(this.subnetProfiles, new Int32Array(capacity));
      this.records = longer(this.records, new Int32Array(capacity));
    });
    this.#aggregates = new KeyTable(mostAggregates, (capacity) => this.#aggregateSums.grow(capacity));
  }

  /** The row that it was added to; -1 when it counts for its aggregate alone. */
  add(
    a: number,
    b: number,
    c: number,
    d: number,
    tag: number,
    packets: number,
    bytes: number,
    samples: number,
  ): number {
    const { keys } = this;
    let row = keys.find(a, b, c, d, tag);
    if (row >= 0) {
      this.#sums.add(row, packets, bytes, samples);
      return row;
    }
    if (keys.full) {
      row = this.#least(samples);
      if (row < 0) {
        this.#addToAggregate(a, b, tag, packets, bytes, samples);
        return -1;
      }
      this.#giveUp(row);
      keys.replace(row, a, b, c, d, tag);
    } else {
      row = keys.add(a, b, c, d, tag);
    }
    this.#sums.set(row, packets, bytes, samples);
    this.records[row] = 0;
    this.#admitted(row);
    return row;
  }

  /** The rows of the slot, and an empty table for the next. Takes as long as rows were touched. */
  take(): SlotColumns {
    const { keys } = this;
    const rows = keys.used;
    const aggregates = this.#aggregates.used;
    const count = rows + aggregates;
    const columns: SlotColumns = {
      count,
      families: new Uint8Array(count),
      addresses: new Uint32Array(count * 4),
      vectors: new Uint8Array(count),
      packets: new Float64Array(count),
      bytes: new Float64Array(count),
      samples: new Float64Array(count),
    };
    put(columns, 0, keys, this.#sums, 0);
    put(columns, rows, this.#aggregates, this.#aggregateSums, AGGREGATE_ONLY);
    keys.clear();
    this.#aggregates.clear();
    this.#hand = 0;
    this.#aggregateHand = 0;
    return columns;
  }

  /** A row that has at most `most` samples and no profile: the one with the least of some; -1: none of them. */
  #least(most: number): number {
    let found = -1;
    let least = most;
    for (let i = 0; i < candidates; i++) {
      const row = this.#hand;
      this.#hand = (row + 1) % this.keys.used;
      const samples = this.#sums.samples[row] as number;
      if (samples <= least && this.profiles[row] === 0 && this.subnetProfiles[row] === 0) {
        least = samples;
        found = row;
      }
    }
    return found;
  }

  #giveUp(row: number): void {
    const { words, tags } = this.keys;
    const { packets, bytes, samples } = this.#sums;
    this.#addToAggregate(
      words[row * 4] as number,
      words[row * 4 + 1] as number,
      tags[row] as number,
      packets[row] as number,
      bytes[row] as number,
      samples[row] as number,
    );
  }

  #addToAggregate(a: number, b: number, tag: number, packets: number, bytes: number, samples: number): void {
    const keys = this.#aggregates;
    const sums = this.#aggregateSums;
    const first = tag < IPV6_TAG ? (a & 0xffffff00) >>> 0 : a;
    let row = keys.find(first, b, 0, 0, tag);
    if (row >= 0) {
      sums.add(row, packets, bytes, samples);
      return;
    }
    if (keys.full) {
      row = this.#aggregateHand;
      for (let i = 1; i < candidates; i++) {
        const other = (this.#aggregateHand + i) % keys.used;
        if ((sums.samples[other] as number) < (sums.samples[row] as number)) row = other;
      }
      this.#aggregateHand = (this.#aggregateHand + candidates) % keys.used;
      if ((sums.samples[row] as number) > samples) {
        this.lostSamples += samples;
        return;
      }
      this.lostSamples += sums.samples[row] as number;
      keys.replace(row, first, b, 0, 0, tag);
    } else {
      row = keys.add(first, b, 0, 0, tag);
    }
    sums.set(row, packets, bytes, samples);
  }
}

function put(columns: SlotColumns, from: number, keys: KeyTable, sums: Sums, kind: number): void {
  const { families, addresses, vectors, packets, bytes, samples } = columns;
  const { used, tags } = keys;
  addresses.set(keys.words.subarray(0, used * 4), from * 4);
  packets.set(sums.packets.subarray(0, used), from);
  bytes.set(sums.bytes.subarray(0, used), from);
  samples.set(sums.samples.subarray(0, used), from);
  for (let row = 0; row < used; row++) {
    const tag = tags[row] as number;
    families[from + row] = (tag < IPV6_TAG ? 4 : 6) + kind;
    vectors[from + row] = tag & vectorMask;
  }
}
