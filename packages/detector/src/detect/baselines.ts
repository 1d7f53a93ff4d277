/**
 * Owns what is usual where it can matter: the hours of the week of keys that come near what would be too much. Learns from
 * whole hours, never from attacks. Bounded; keys that come near no longer are let go. What it decides by is core's
 * `baseline.ts`.
 */
import type { BaselineEntry } from '@levee/contract/detector.ts';
import { canMatter, HOURS, hourOfWeek, hourStart, learn, usualAt } from '@levee/core/detection/baseline.ts';
import type { Rates, Usual } from '@levee/core/detection/judge.ts';
import { wordsOf } from '@levee/core/detection/outermost.ts';
import { type Vector, vectorNumber, vectors } from '@levee/core/detection/vector.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { type Places, prefixAt } from './places.ts';
import { type Traffic, tagOf } from './traffic.ts';

/** Keys; each takes some 2 KB. */
export const MOST_BASELINES = 20_000;
/** From less of an hour nothing is learnt. */
const leastSlots = (5 * 60_000) / SLOT_MILLISECONDS;
const none = -1;

interface Row {
  readonly prefix: Prefix;
  readonly vector: number;
  destination: number;
  key: number;
  readonly pps: Float64Array;
  readonly bps: Float64Array;
  readonly weights: Uint8Array;
  /** What is usual in this hour; undefined: nothing is known. */
  usual: Usual | undefined;
  packets: number;
  bytes: number;
  /** Slots of this hour that were an attack's. */
  excluded: number;
}

export class Baselines {
  /** Keys that came near and did not fit, since the start. */
  refused = 0;
  readonly #rows: (Row | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #byName = new Map<string, number>();
  /** `[row, hour]` that nobody was told of yet. */
  #changed = new Map<string, readonly [number, number]>();
  #hourMs = 0;
  #hour = 0;
  /** Slots of this hour that were judged. */
  #slots = 0;
  #isWhole = true;
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  get size(): number {
    return this.#byName.size;
  }

  /** What was learnt before, here or elsewhere. What is not protected or not ours is passed over; what nobody was told of yet stays. */
  load(
    entries: readonly BaselineEntry[],
    traffic: Traffic,
    nowMs: number,
    isOurs: (destination: Prefix) => boolean = () => true,
  ): void {
    // The hour that goes on is closed by the slots alone.
    if (this.#hourMs === 0) this.#setHour(nowMs);
    for (const entry of entries) {
      const read = parsePrefix(entry.dst);
      const vector = vectorNumber(entry.vector as Vector) ?? none;
      if (!read.ok || vector === none || !Number.isInteger(entry.hour) || entry.hour < 0 || entry.hour >= HOURS)
        continue;
      if (!isOurs(read.prefix)) continue;
      const name = `${formatPrefix(read.prefix)} ${vector}`;
      // Of the hour that goes on somebody else has seen the beginning.
      const number = this.#byName.get(name) ?? this.#add(name, read.prefix, vector, traffic, this.#slots);
      const row = this.#rows[number];
      if (row === undefined || this.#changed.has(`${number} ${entry.hour}`)) continue;
      row.pps[entry.hour] = entry.pps;
      row.bps[entry.hour] = entry.bps;
      row.weights[entry.hour] = Math.max(1, Math.min(255, entry.weight));
    }
    for (const row of this.#rows) if (row !== undefined) row.usual = usualAt(row, this.#hour);
  }

  /** A key that came near what would be too much: from now on its hours are learnt. */
  note(traffic: Traffic, destination: number, key: number): void {
    if (this.size >= MOST_BASELINES) {
      this.refused++;
      return;
    }
    const prefix = prefixAt(traffic, destination);
    const vector = traffic.vectors[key] as number;
    this.#add(`${formatPrefix(prefix)} ${vector}`, prefix, vector, traffic);
  }

  usual(number: number): Usual | undefined {
    return this.#rows[number]?.usual;
  }

  /** Traffic of one slot of a key; `isAttacked`: it is not what is usual. */
  count(number: number, packets: number, bytes: number, isAttacked: boolean): void {
    const row = this.#rows[number];
    if (row === undefined || !this.#isWhole) return;
    if (isAttacked) {
      row.excluded++;
      return;
    }
    row.packets += packets;
    row.bytes += bytes;
  }

  /**
   * Once a slot, before its traffic is counted; at the end of an hour it learns from it, which goes by how many keys there are.
   * `isWhole`: all that came in the slot was seen; of another nothing is learnt.
   */
  judged(traffic: Traffic, atMs: number, isWhole = true): void {
    this.#isWhole = isWhole;
    if (hourStart(atMs) === this.#hourMs) {
      if (isWhole) this.#slots++;
      return;
    }
    if (this.#hourMs !== 0) this.#closeHour(traffic, hourOfWeek(atMs));
    this.#setHour(atMs);
    this.#slots = isWhole ? 1 : 0;
  }

  /** At most so many of those that changed since they were last taken. */
  take(most: number): BaselineEntry[] {
    const taken: BaselineEntry[] = [];
    for (const [name, [number, hour]] of this.#changed) {
      if (taken.length === most) break;
      this.#changed.delete(name);
      const row = this.#rows[number];
      if (row === undefined) continue;
      taken.push({
        dst: formatPrefix(row.prefix),
        vector: vectors[row.vector] as string,
        hour,
        pps: rounded(row.pps[hour] as number),
        bps: rounded(row.bps[hour] as number),
        weight: row.weights[hour] as number,
      });
    }
    return taken;
  }

  /** Traffic is held anew: finds the keys again. What is no longer protected is forgotten. */
  attach(traffic: Traffic): void {
    for (const [number, row] of this.#rows.entries()) {
      if (row !== undefined && !this.#attachRow(number, row, traffic)) this.#forget(number, row);
    }
  }

  /** Somebody else learns these now: what is not seen here must not be learnt as nothing. */
  release(isOurs: (destination: Prefix) => boolean, traffic: Traffic): void {
    for (const [number, row] of this.#rows.entries()) {
      if (row === undefined || isOurs(row.prefix)) continue;
      this.#release(row, traffic);
      this.#forget(number, row);
    }
    for (const [name, [number]] of this.#changed) if (this.#rows[number] === undefined) this.#changed.delete(name);
  }

  #setHour(atMs: number): void {
    this.#hourMs = hourStart(atMs);
    this.#hour = hourOfWeek(atMs);
  }

  #closeHour(traffic: Traffic, next: number): void {
    for (const [number, row] of this.#rows.entries()) {
      if (row === undefined) continue;
      const { pps, bps } = this.#places.levels(traffic, row.destination);
      const thresholds = { pps: pps[row.vector] as number, bps: bps[row.vector] as number };
      const slots = this.#slots - row.excluded;
      if (slots >= leastSlots) {
        const seconds = (slots * SLOT_MILLISECONDS) / 1000;
        const hour = this.#hour;
        const measured = { pps: row.packets / seconds, bps: (row.bytes * 8) / seconds };
        const known = { pps: row.pps[hour] ?? 0, bps: row.bps[hour] ?? 0, weight: row.weights[hour] ?? 0 };
        const learnt = learn(known, measured, thresholds);
        row.pps[hour] = learnt.pps;
        row.bps[hour] = learnt.bps;
        row.weights[hour] = learnt.weight;
        this.#changed.set(`${number} ${hour}`, [number, hour]);
      }
      row.packets = 0;
      row.bytes = 0;
      row.excluded = 0;
      row.usual = usualAt(row, next);
      if (!this.#matters(row, thresholds, traffic)) {
        this.#release(row, traffic);
        this.#forget(number, row);
      }
    }
  }

  #matters(row: Row, thresholds: Rates, traffic: Traffic): boolean {
    const { factor } = this.#places.levels(traffic, row.destination);
    for (let hour = 0; hour < HOURS; hour++) {
      if (canMatter({ pps: row.pps[hour] as number, bps: row.bps[hour] as number }, thresholds, factor)) return true;
    }
    return false;
  }

  /** `unseen`: slots of this hour that are not counted for it. */
  #add(name: string, prefix: Prefix, vector: number, traffic: Traffic, unseen = 0): number {
    if (this.size >= MOST_BASELINES) {
      this.refused++;
      return none;
    }
    const row: Row = {
      prefix,
      vector,
      destination: none,
      key: none,
      pps: new Float64Array(HOURS),
      bps: new Float64Array(HOURS),
      weights: new Uint8Array(HOURS),
      usual: undefined,
      packets: 0,
      bytes: 0,
      excluded: unseen,
    };
    const number = this.#free.pop() ?? this.#rows.length;
    this.#rows[number] = row;
    if (!this.#attachRow(number, row, traffic)) {
      this.#rows[number] = undefined;
      this.#free.push(number);
      return none;
    }
    this.#byName.set(name, number);
    return number;
  }

  #attachRow(number: number, row: Row, traffic: Traffic): boolean {
    const { family, length, value } = row.prefix;
    const [a = 0, b = 0, c = 0, d = 0] = wordsOf(family, value);
    const destination = traffic.ensure(a, b, c, d, tagOf(family, length));
    if (destination === none) return false;
    const key = traffic.ensureKey(destination, row.vector);
    if (key === none) return false;
    traffic.baselines[key] = number;
    traffic.pin(destination);
    row.destination = destination;
    row.key = key;
    return true;
  }

  #release(row: Row, traffic: Traffic): void {
    traffic.baselines[row.key] = none;
    traffic.unpin(row.destination);
  }

  #forget(number: number, row: Row): void {
    this.#byName.delete(`${formatPrefix(row.prefix)} ${row.vector}`);
    this.#rows[number] = undefined;
    this.#free.push(number);
  }
}

function rounded(rate: number): number {
  return Math.round(rate * 100) / 100;
}
