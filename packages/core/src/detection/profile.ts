/**
 * Owns what the packets of one vector of an attack look like: adds up what collectors tell of single slots, and forgets it
 * after half a minute, as attacks change their shape. Bounded whatever is told. Pure: time is an argument.
 */
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import { formatAddress, parseAddress } from '../net/address.ts';
import { bounded, LONGEST_PACKET, MOST_COUNTED } from './bounds.ts';

/** What one collector tells of one slot; `[key, samples]`, those with the most weight, not all. */
export interface ProfilePart {
  readonly samples: number;
  readonly protocols: readonly (readonly [number, number])[];
  readonly sourcePorts: readonly (readonly [number, number])[];
  readonly destinationPorts: readonly (readonly [number, number])[];
  readonly icmp: readonly (readonly [number, number])[];
  readonly tcpFlags: readonly (readonly [number, number])[];
  /** By length / 16, rounded down. */
  readonly lengths: readonly (readonly [number, number])[];
  readonly shortest: number;
  readonly longest: number;
  readonly laterFragments: number;
  readonly sources: readonly (readonly [string, number])[];
  readonly distinctSources: number;
  readonly entries: readonly (readonly [string, number])[];
}

/** A generation is added to for so long, and counts for as long again. */
const generationMilliseconds = 15_000;
const mostShares = 64;
/** Of each kind of key; beyond twice as many the rarest go. Of some 100 octets each, times kinds and generations. */
const mostKeys = 128;
const leastKeys = 8;
/** As many profiles have all their keys; of more each has less, and all together take some 60 MB. */
const wholeProfiles = 1_024;
/** Bits of the linear count of sources (Whang, Vander-Zanden, Taylor 1990). */
const sourceBits = 8192;
const lengthStep = 16;
const shorterShare = 0.05;

/** The highest key that there is; what is above counts as that. */
const highestKeys = {
  protocols: 255,
  sourcePorts: 65_535,
  destinationPorts: 65_535,
  icmp: 65_535,
  tcpFlags: 255,
  lengths: Math.floor(LONGEST_PACKET / lengthStep),
} as const;
type NumberKind = keyof typeof highestKeys;
const numberKinds = Object.keys(highestKeys) as readonly NumberKind[];
type Counts<K> = Map<K, number>;

interface Generation {
  readonly numbers: Readonly<Record<NumberKind, Counts<number>>>;
  readonly sources: Counts<string>;
  readonly entries: Counts<string>;
  readonly seen: Uint32Array;
  samples: number;
  shortest: number;
  longest: number;
  laterFragments: number;
  listedSources: number;
  toldSources: number;
}

export type ProfileShares = Omit<
  VectorProfile,
  'vector' | 'pps' | 'bps' | 'peak_pps' | 'peak_bps' | 'baseline_pps' | 'baseline_bps' | 'destinations'
>;

/** How many keys of a kind each of so many profiles keeps: a power of two, so that it changes rarely. */
export function keysOfEach(profiles: number): number {
  let most = mostKeys;
  while (most > leastKeys && profiles * most > wholeProfiles * mostKeys) most /= 2;
  return most;
}

export class ProfileWindow {
  #current = newGeneration();
  #before: Generation | undefined;
  #sinceMs: number;
  #most = mostKeys;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** From now on it keeps so many keys of a kind, see `keysOfEach`. */
  fit(most: number): void {
    if (most < this.#most) {
      for (const generation of [this.#current, this.#before]) {
        if (generation === undefined) continue;
        for (const counts of Object.values(generation.numbers)) prune(counts, most);
        prune(generation.sources, most);
        prune(generation.entries, most);
      }
    }
    this.#most = most;
  }

  get samples(): number {
    return this.#current.samples + (this.#before?.samples ?? 0);
  }

  add(part: ProfilePart, nowMs: number): void {
    const age = nowMs - this.#sinceMs;
    if (age >= generationMilliseconds) {
      this.#before = age < 2 * generationMilliseconds ? this.#current : undefined;
      this.#current = newGeneration();
      this.#sinceMs = nowMs;
    }
    const to = this.#current;
    for (const kind of numberKinds) {
      const highest = highestKeys[kind];
      const counts = part[kind].map(([key, count]) => [Math.floor(bounded(key, highest)), count] as const);
      addCounts(to.numbers[kind], counts, this.#most);
    }
    addCounts(to.sources, part.sources, this.#most);
    addCounts(to.entries, part.entries, this.#most);
    for (const [source] of part.sources) setBit(to.seen, hash(source) % sourceBits);
    if (part.samples > 0) {
      to.shortest = Math.min(to.shortest, Math.floor(bounded(part.shortest, LONGEST_PACKET)));
      // Never below what is shortest, be it told so: of a slot, and so of all of them.
      to.longest = Math.max(to.longest, to.shortest, Math.floor(bounded(part.longest, LONGEST_PACKET)));
    }
    to.samples = added(to.samples, part.samples);
    to.laterFragments = added(to.laterFragments, part.laterFragments);
    to.listedSources += part.sources.length;
    to.toldSources = added(to.toldSources, Math.max(bounded(part.distinctSources, MOST_COUNTED), part.sources.length));
  }

  shares(): ProfileShares {
    const all = [this.#current, this.#before].filter((each) => each !== undefined);
    const samples = this.samples;
    const of = (kind: NumberKind) => top(join(all.map(({ numbers }) => numbers[kind])), samples);
    const lengths = join(all.map(({ numbers }) => numbers.lengths));
    const min = Math.min(...all.map(({ shortest }) => shortest));
    const max = Math.max(...all.map(({ longest }) => longest));
    const fragments = all.reduce((whole, { laterFragments }) => whole + laterFragments, 0);
    return {
      samples,
      protocols: of('protocols'),
      source_ports: of('sourcePorts'),
      destination_ports: of('destinationPorts'),
      icmp: of('icmp'),
      tcp_flags: of('tcpFlags'),
      length:
        samples === 0 ? { min: 0, p5: 0, max: 0 } : { min, p5: Math.min(lowLength(lengths, samples, min), max), max },
      later_fragments: samples === 0 ? 0 : rounded(Math.min(1, fragments / samples)),
      sources: top(join(all.map(({ sources }) => sources)), samples).filter(({ value }) => isCanonical(value)),
      distinct_sources: Math.min(samples, distinct(all)),
    };
  }

  /** `exporter/interface` → samples. */
  entries(): ReadonlyMap<string, number> {
    return join([this.#current, this.#before].flatMap((each) => (each === undefined ? [] : [each.entries])));
  }
}

/** Shares of the whole, the highest first; equal ones in the order of their values, so that a repetition is the same. */
export function top<K extends string | number>(
  counts: ReadonlyMap<K, number>,
  whole: number,
  most: number = mostShares,
): Share<K>[] {
  if (whole <= 0) return [];
  return [...counts]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([value, count]) => ({ value, share: rounded(Math.min(1, count / whole)) }));
}

function added(of: number, more: number): number {
  return Math.min(of + bounded(more, MOST_COUNTED), MOST_COUNTED);
}

function isCanonical(text: string): boolean {
  const parsed = parseAddress(text);
  return parsed.ok && formatAddress(parsed.address) === text;
}

function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}

function newGeneration(): Generation {
  return {
    numbers: {
      protocols: new Map(),
      sourcePorts: new Map(),
      destinationPorts: new Map(),
      icmp: new Map(),
      tcpFlags: new Map(),
      lengths: new Map(),
    },
    sources: new Map(),
    entries: new Map(),
    seen: new Uint32Array(sourceBits / 32),
    samples: 0,
    shortest: 65_535,
    longest: 0,
    laterFragments: 0,
    listedSources: 0,
    toldSources: 0,
  };
}

function addCounts<K>(to: Counts<K>, more: Iterable<readonly [K, number]>, most: number): void {
  for (const [key, count] of more) to.set(key, added(to.get(key) ?? 0, count));
  prune(to, most);
}

function prune<K>(counts: Counts<K>, most: number): void {
  if (counts.size <= 2 * most) return;
  const kept = [...counts].sort(([, x], [, y]) => y - x).slice(0, most);
  counts.clear();
  for (const [key, count] of kept) counts.set(key, count);
}

function join<K>(maps: readonly Counts<K>[]): Counts<K> {
  const [first, second] = maps;
  if (first === undefined || second === undefined) return first ?? new Map();
  const joined = new Map(first);
  for (const [key, count] of second) joined.set(key, (joined.get(key) ?? 0) + count);
  return joined;
}

/** At most a twentieth is shorter, those of unknown length counted as if they were. */
function lowLength(lengths: Counts<number>, samples: number, min: number): number {
  const steps = [...lengths].sort(([a], [b]) => a - b);
  let below = samples - steps.reduce((sum, [, count]) => sum + count, 0);
  for (const [step, count] of steps) {
    if (below + count > shorterShare * samples)
      return below > shorterShare * samples ? min : Math.max(min, step * lengthStep);
    below += count;
  }
  return min;
}

/** Sources that were listed are counted by bits; those that were not are taken to repeat as these do. */
function distinct(generations: readonly Generation[]): number {
  const listed = generations.reduce((sum, each) => sum + each.listedSources, 0);
  const told = generations.reduce((sum, each) => sum + each.toldSources, 0);
  if (listed === 0) return told;
  let zeros = sourceBits;
  for (let word = 0; word < sourceBits / 32; word++) {
    zeros -= bitsOf(generations.reduce((bits, { seen }) => bits | (seen[word] ?? 0), 0));
  }
  const counted = Math.min(listed, -sourceBits * Math.log(Math.max(zeros, 0.5) / sourceBits));
  return Math.round((counted * told) / listed);
}

function setBit(bits: Uint32Array, bit: number): void {
  bits[bit >>> 5] = (bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
}

function bitsOf(word: number): number {
  let count = 0;
  for (let rest = word; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** FNV-1a with a last mix, 32 bits unsigned. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
