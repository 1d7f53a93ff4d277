/**
 * Owns which destinations detectors look at more closely: addresses, and subnets as a whole. Each detector tells its own set, which
 * stands until it tells another. Never on the path of a record: asked once for each row of a slot.
 */
import { familyBits } from '@levee/core/net/prefix.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { maskedWord, wordsOf } from './address-words.ts';
import { KeyTable } from './key-table.ts';

const mostDestinations = 4_096;
/** Of detectors that were told of; the one that has been silent longest is forgotten. */
const mostDetectors = 16;
const ipv6Tag = 256;

export class HotSet {
  readonly #told = new Map<string, readonly string[]>();
  #keys = new KeyTable(1 << 12, () => undefined);
  #texts: string[] = [];
  /** Lengths of subnets that are in it, the longest first. */
  #lengths: Record<4 | 6, number[]> = { 4: [], 6: [] };

  get size(): number {
    return this.#keys.size;
  }

  /** What is no address and no subnet is left out, as is what comes after the 4 096th of all detectors. */
  tell(detector: string, destinations: readonly string[]): void {
    this.#told.delete(detector);
    if (destinations.length > 0) this.#told.set(detector, destinations);
    if (this.#told.size > mostDetectors) this.#told.delete(this.#told.keys().next().value as string);
    this.#keys = new KeyTable(1 << 12, () => undefined);
    this.#texts = [];
    const lengths: Record<4 | 6, Set<number>> = { 4: new Set(), 6: new Set() };
    for (const texts of this.#told.values()) {
      for (const text of texts) {
        const parsed = parsePrefix(text);
        if (!parsed.ok || this.#keys.size === mostDestinations) continue;
        const { family, length } = parsed.prefix;
        const [a, b, c, d] = wordsOf(parsed.prefix);
        const tag = tagOf(family, length);
        if (this.#keys.find(a, b, c, d, tag) >= 0) continue;
        this.#texts[this.#keys.add(a, b, c, d, tag)] = text;
        if (length < familyBits(family)) lengths[family].add(length);
      }
    }
    for (const family of [4, 6] as const)
      this.#lengths[family] = [...lengths[family]].sort((one, other) => other - one);
  }

  /** Its number if the address itself is hot; -1: it is not. */
  address(family: 4 | 6, a: number, b: number, c: number, d: number): number {
    return this.#keys.find(a, b, c, d, tagOf(family, familyBits(family)));
  }

  /** The number of the narrowest hot subnet that the address is in; -1: there is none. */
  subnet(family: 4 | 6, a: number, b: number, c: number, d: number): number {
    for (const length of this.#lengths[family]) {
      const first = maskedWord(a, 0, length);
      const found =
        family === 4
          ? this.#keys.find(first, 0, 0, 0, tagOf(4, length))
          : this.#keys.find(
              first,
              maskedWord(b, 1, length),
              maskedWord(c, 2, length),
              maskedWord(d, 3, length),
              tagOf(6, length),
            );
      if (found >= 0) return found;
    }
    return -1;
  }

  /** As it was told. */
  text(number: number): string {
    return this.#texts[number] ?? '';
  }
}

function tagOf(family: 4 | 6, length: number): number {
  return length + (family === 6 ? ipv6Tag : 0);
}
