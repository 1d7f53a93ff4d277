/**
 * Owns what the packets of hot destinations look like in the slot that is going on. A profile is a fixed 21 KB and used again and
 * again; there are at most 1 024 in a slot, where there are more, those with the most samples (Space-Saving, as in
 * heavy-keys.ts: who takes over a profile stands for what it had without one). Flow records count with their packets, and with their average length. Of many records in a
 * slot one in eight is looked at, for eight: shares of thousands are no less certain by it, and an attack costs little more than peace.
 */

import { LONGEST_PACKET } from '@levee/core/detection/bounds.ts';
import type { SlotProfile } from '../bus/port.ts';
import type { FlowRecord } from '../flow-record.ts';
import { addressText } from './address-words.ts';
import { DistinctCount } from './distinct-count.ts';
import { HeavyKeys } from './heavy-keys.ts';
import { hashWords } from './key-table.ts';

export const MOST_PROFILES = 1_024;
const lengthStep = 16;
/** Records of a slot that are all looked at. */
const allOf = 512;
const oneOf = 8;
/** Of a record that came without an interface. */
const noInterface = 0xffffffff;

class Profile {
  /** Which a row has to name it by; another one when it is given to others. */
  reference = 0;
  /** Samples that its destination had in the slot before it got the profile. */
  unseen = 0;
  dst = '';
  vector = 0;
  samples = 0;
  records = 0;
  shortest = Number.POSITIVE_INFINITY;
  longest = 0;
  laterFragments = 0;
  readonly protocols = new HeavyKeys();
  readonly sourcePorts = new HeavyKeys();
  readonly destinationPorts = new HeavyKeys();
  readonly icmp = new HeavyKeys();
  readonly tcpFlags = new HeavyKeys();
  readonly lengths = new HeavyKeys();
  readonly sources4 = new HeavyKeys();
  readonly sources6 = new HeavyKeys();
  readonly entries = new HeavyKeys();
  readonly distinct = new DistinctCount();

  clear(): void {
    this.unseen = 0;
    this.samples = 0;
    this.records = 0;
    this.shortest = Number.POSITIVE_INFINITY;
    this.longest = 0;
    this.laterFragments = 0;
    this.protocols.clear();
    this.sourcePorts.clear();
    this.destinationPorts.clear();
    this.icmp.clear();
    this.tcpFlags.clear();
    this.lengths.clear();
    this.sources4.clear();
    this.sources6.clear();
    this.entries.clear();
    this.distinct.clear();
  }
}

export class Profiles {
  /** Records of hot destinations for which there was no profile left, since the start. */
  unprofiled = 0;
  readonly #profiles: Profile[] = [];
  /** References by vector and destination. */
  readonly #known = new Map<string, number>();
  readonly #most: number;
  #used = 0;
  /** All are at least as heavy, as far as it was looked at in this slot. */
  #floor = 0;
  #taken = 0;

  readonly #random: () => number;

  /** `random`: 0 … 1, 1 excluded. */
  constructor(random: () => number = Math.random, most = MOST_PROFILES) {
    this.#random = random;
    this.#most = most;
  }

  /** The reference, above 0, of the profile of a destination and vector in this slot; -1: there is none left. */
  open(dst: string, vector: number): number {
    const known = this.#known.get(keyOf(dst, vector));
    if (known !== undefined) return known;
    if (this.#used === this.#most) return -1;
    const number = this.#used++;
    this.#profiles[number] ??= new Profile();
    return this.#give(number, number + 1, dst, vector);
  }

  /** Whether the reference is still that of a profile. */
  has(reference: number): boolean {
    return reference > 0 && this.#profiles[(reference - 1) % this.#most]?.reference === reference;
  }

  /** Whether any profile has had fewer samples. */
  isLighterThan(samples: number): boolean {
    if (samples <= this.#floor) return false;
    this.#floor = weightOf(this.#profiles[this.#lightest()] as Profile);
    return samples > this.#floor;
  }

  /** The profile with the fewest samples begins anew, for a destination and vector that had so many without one. */
  replaceLightest(dst: string, vector: number, unseen: number): number {
    const known = this.#known.get(keyOf(dst, vector));
    if (known !== undefined) return known;
    const number = this.#lightest();
    const profile = this.#profiles[number] as Profile;
    this.unprofiled += profile.records;
    this.#known.delete(keyOf(profile.dst, profile.vector));
    profile.clear();
    profile.unseen = unseen;
    return this.#give(number, ++this.#taken * this.#most + number + 1, dst, vector);
  }

  /** `samples`: packets that the record was made of; `exporter`: its number. */
  add(reference: number, record: FlowRecord, samples: number, exporter: number): void {
    const profile = this.#profiles[(reference - 1) % this.#most] as Profile;
    let weight = samples;
    if (!(weight > 0)) return;
    profile.samples += weight;
    const length = Math.min(Math.floor(record.bytes / record.packets), LONGEST_PACKET);
    if (length < profile.shortest) profile.shortest = length;
    if (length > profile.longest) profile.longest = length;
    if (record.fragment === 2) profile.laterFragments += weight;
    const { source0, source1, source2, source3 } = record;
    profile.distinct.add(hashWords(source0, source1, source2, source3, record.family));
    if (++profile.records > allOf) {
      if (this.#random() * oneOf >= 1) return;
      weight *= oneOf;
    }
    profile.lengths.add(weight, Math.floor(length / lengthStep));
    profile.protocols.add(weight, record.protocol);
    if (record.fragment !== 2 && (record.protocol === 6 || record.protocol === 17)) {
      profile.sourcePorts.add(weight, record.sourcePort);
      profile.destinationPorts.add(weight, record.destinationPort);
      if (record.protocol === 6) profile.tcpFlags.add(weight, record.tcpFlags);
    }
    if (record.icmp >= 0) profile.icmp.add(weight, record.icmp);
    if (record.family === 4) profile.sources4.add(weight, source0);
    else profile.sources6.add(weight, source0, source1, source2, source3);
    profile.entries.add(weight, exporter, record.inputInterface < 0 ? noInterface : record.inputInterface);
  }

  /** Those with traffic, and none for the next slot. `exporterName`: by number. */
  take(exporterName: (number: number) => string): SlotProfile[] {
    const taken: SlotProfile[] = [];
    for (let number = 0; number < this.#used; number++) {
      const profile = this.#profiles[number] as Profile;
      if (profile.samples > 0) taken.push(rendered(profile, exporterName));
      profile.clear();
    }
    this.#used = 0;
    this.#floor = 0;
    this.#taken = 0;
    this.#known.clear();
    return taken;
  }

  #give(number: number, reference: number, dst: string, vector: number): number {
    const profile = this.#profiles[number] as Profile;
    profile.reference = reference;
    profile.dst = dst;
    profile.vector = vector;
    this.#known.set(keyOf(dst, vector), reference);
    return reference;
  }

  #lightest(): number {
    let found = 0;
    let least = Number.POSITIVE_INFINITY;
    for (let number = 0; number < this.#used; number++) {
      const weight = weightOf(this.#profiles[number] as Profile);
      if (weight < least) {
        least = weight;
        found = number;
      }
    }
    return found;
  }
}

function keyOf(dst: string, vector: number): string {
  return `${vector} ${dst}`;
}

function weightOf({ unseen, samples }: Profile): number {
  return unseen + samples;
}

function rendered(profile: Profile, exporterName: (number: number) => string): SlotProfile {
  const sources: [string, number][] = [];
  for (const [family, keys] of [[4, profile.sources4] as const, [6, profile.sources6] as const]) {
    for (const { place, weight } of keys.places()) {
      const [a = 0, b = 0, c = 0, d = 0] = keys.words.subarray(place, place + 4);
      sources.push([addressText(family, a, b, c, d), weight]);
    }
  }
  const entries = profile.entries.places().map(({ place, weight }): [string, number] => {
    const [exporter = 0, interfaceIndex = noInterface] = profile.entries.words.subarray(place, place + 2);
    const name = exporterName(exporter);
    return [interfaceIndex === noInterface ? name : `${name}/${interfaceIndex}`, weight];
  });
  return {
    dst: profile.dst,
    vector: profile.vector,
    samples: profile.samples,
    protocols: profile.protocols.numbers(),
    sourcePorts: profile.sourcePorts.numbers(),
    destinationPorts: profile.destinationPorts.numbers(),
    icmp: profile.icmp.numbers(),
    tcpFlags: profile.tcpFlags.numbers(),
    lengths: profile.lengths.numbers(),
    shortest: profile.shortest,
    longest: profile.longest,
    laterFragments: profile.laterFragments,
    sources,
    distinctSources: Math.round(profile.distinct.estimate()),
    entries,
  };
}
