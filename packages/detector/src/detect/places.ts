/**
 * Owns what settings say of a place: whether it is protected, its aggregate, its limits. A destination's limits are looked
 * up once and kept by number until policies change. Never looks at traffic.
 */
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { addressValue, maskOf, OutermostPrefixes } from '@levee/core/detection/outermost.ts';
import type { EffectivePolicy, Threshold } from '@levee/core/detection/policy.ts';
import { PolicyIndex } from '@levee/core/detection/policy-index.ts';
import { familyBits, type Prefix, prefixOf } from '@levee/core/net/prefix.ts';
import { familyOf, lengthOf, type Traffic, tagOf } from './traffic.ts';

/** By vector's number; Infinity where no policy limits it. */
export interface Levels {
  readonly pps: Float64Array;
  readonly bps: Float64Array;
  /** Uuids of policies, or `default`. */
  readonly policies: readonly string[];
  readonly factor: number;
  readonly holdMilliseconds: number;
}

const none = -1;

export class Places {
  #outermost = new OutermostPrefixes([]);
  #policies = new PolicyIndex([]);
  #prefixesText = '';
  #policiesText = '';
  /** Addresses' and subnets' of one policy beside each other. */
  #levels: Levels[] = [];
  #numbers = new Map<EffectivePolicy, number>();
  /** Subnets all of whose addresses have the same policy, by their number in the table: its number. */
  #uniform = new Map<number, number>();

  take({ prefixes, policies }: DetectorSettings): { prefixesChanged: boolean; policiesChanged: boolean } {
    const prefixesText = prefixes.join();
    const policiesText = JSON.stringify(policies);
    const prefixesChanged = prefixesText !== this.#prefixesText;
    const policiesChanged = policiesText !== this.#policiesText;
    if (prefixesChanged) this.#outermost = new OutermostPrefixes(prefixes);
    if (policiesChanged) {
      this.#policies = new PolicyIndex(policies);
      this.#levels = [];
      this.#numbers = new Map();
    }
    if (policiesChanged || prefixesChanged) this.#uniform = new Map();
    this.#prefixesText = prefixesText;
    this.#policiesText = policiesText;
    return { prefixesChanged, policiesChanged };
  }

  isProtected(prefix: Prefix, words: ArrayLike<number>): boolean {
    const [a = 0, b = 0, c = 0, d = 0] = Array.from(words);
    const length = this.#outermost.lengthAt(prefix.family, a, b, c, d);
    return length >= 0 && length <= prefix.length;
  }

  /** Gives a new destination its aggregate; false: it is not protected. */
  place(traffic: Traffic, row: number): boolean {
    const { words, tags } = traffic.table;
    const tag = tags[row] as number;
    const family = familyOf(tag);
    const at = row * 4;
    const [a, b, c, d] = [words[at], words[at + 1], words[at + 2], words[at + 3]] as [number, number, number, number];
    const length = this.#outermost.aggregateLengthAt(family, a, b, c, d);
    if (length < 0) return false;
    if (lengthOf(tag) === length && length < familyBits(family)) {
      traffic.aggregates[row] = row;
      return true;
    }
    if (lengthOf(tag) !== familyBits(family)) return false;
    if (length < familyBits(family)) {
      const mask = (word: number, index: number) => (word & maskOf(length - index * 32)) >>> 0;
      const aggregate = traffic.ensure(mask(a, 0), mask(b, 1), mask(c, 2), mask(d, 3), tagOf(family, length));
      // Without room for it the address goes on its own.
      traffic.aggregates[row] = aggregate;
    }
    return true;
  }

  levels(traffic: Traffic, row: number): Levels {
    let number = traffic.policies[row] as number;
    if (number === none) {
      number = this.#find(traffic, row);
      traffic.policies[row] = number;
    }
    return this.#levels[number] as Levels;
  }

  #find(traffic: Traffic, row: number): number {
    const aggregate = traffic.aggregates[row] as number;
    if (aggregate === none) return this.#numberOf(prefixAt(traffic, row));
    let uniform = this.#uniform.get(aggregate);
    if (uniform === undefined) {
      const subnet = prefixAt(traffic, aggregate);
      uniform = this.#policies.isUniform(subnet) ? this.#numberOf(subnet) : none;
      // Only for as long as rows keep their place: the map must not outgrow what is tracked.
      if (this.#uniform.size > 65_536) this.#uniform.clear();
      this.#uniform.set(aggregate, uniform);
    }
    if (row === aggregate) return (uniform === none ? this.#numberOf(prefixAt(traffic, row)) : uniform) + 1;
    return uniform === none ? this.#numberOf(prefixAt(traffic, row)) : uniform;
  }

  #numberOf(prefix: Prefix): number {
    const policy = this.#policies.of(prefix);
    let number = this.#numbers.get(policy);
    if (number === undefined) {
      number = this.#levels.length;
      this.#levels.push(levelsOf(policy, policy.thresholds), levelsOf(policy, policy.aggregateThresholds));
      this.#numbers.set(policy, number);
    }
    return number;
  }
}

function levelsOf({ holdSeconds, baselineFactor }: EffectivePolicy, thresholds: readonly Threshold[]): Levels {
  return {
    pps: Float64Array.from(thresholds, ({ pps }) => pps ?? Number.POSITIVE_INFINITY),
    bps: Float64Array.from(thresholds, ({ bps }) => bps ?? Number.POSITIVE_INFINITY),
    policies: thresholds.map(({ policy }) => policy),
    factor: baselineFactor,
    holdMilliseconds: holdSeconds * 1000,
  };
}

export function prefixAt(traffic: Traffic, row: number): Prefix {
  const tag = traffic.table.tags[row] as number;
  const family = familyOf(tag);
  return prefixOf({ family, value: addressValue(family, traffic.table.words, row * 4) }, lengthOf(tag));
}
