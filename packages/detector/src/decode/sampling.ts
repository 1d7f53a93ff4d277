/**
 * Owns which sampling rate an exporter told for which of its packets: of a domain, an interface, a selector, a row of
 * selectors. Never guesses between several that differ.
 */

import { MOST_SAMPLING_RATE } from '@levee/contract/detector.ts';

/** How many selectors, interfaces and rows of selectors are kept of one domain. */
const MOST_ENTRIES = 512;

/** What one record of options told; 0 and -1: nothing. */
export interface SamplingTold {
  readonly rate: number;
  readonly selector: number;
  readonly selection: number;
  /** Of the row `selection`. */
  readonly selectors: readonly number[];
  readonly inputInterface: number;
  readonly algorithm: number;
}

export class SamplingMemory {
  readonly #selectors = new Map<number, number>();
  readonly #interfaces = new Map<number, number>();
  readonly #selections = new Map<number, readonly number[]>();
  #domainRate = 0;
  #unanimous = 0;
  #isStale = false;
  /** The last question and its answer: the records of a set are mostly alike. */
  #askedSelector = -2;
  #askedSelection = -2;
  #askedInterface = -2;
  #answer = 0;

  /** Nothing was told that says a rate. */
  isEmpty = true;

  note(told: SamplingTold): void {
    this.#askedSelector = -2;
    this.#isStale = true;
    if (told.selection >= 0 && told.selectors.length > 0) {
      put(this.#selections, told.selection, [...told.selectors]);
      return;
    }
    // A filter by properties (RFC 5477: algorithm 5) leaves rates as they are.
    const rate = told.rate > 0 ? told.rate : told.algorithm === 5 ? 1 : 0;
    if (rate === 0) return;
    this.isEmpty = false;
    if (told.selector >= 0) put(this.#selectors, told.selector, rate);
    else if (told.inputInterface > 0) put(this.#interfaces, told.inputInterface, rate);
    else this.#domainRate = rate;
  }

  /** How many packets one stands for; 0: nothing was told that would say so. -1: the record does not tell. */
  rate(selector: number, selection: number, inputInterface: number): number {
    if (
      selector === this.#askedSelector &&
      selection === this.#askedSelection &&
      inputInterface === this.#askedInterface
    ) {
      return this.#answer;
    }
    this.#askedSelector = selector;
    this.#askedSelection = selection;
    this.#askedInterface = inputInterface;
    this.#answer = this.#find(selector, selection, inputInterface);
    return this.#answer;
  }

  #find(selector: number, selection: number, inputInterface: number): number {
    const row = this.#selections.get(selection);
    if (row !== undefined) {
      let product = 1;
      for (const each of row) product *= this.#selectors.get(each) ?? 0;
      if (product > 0 && product <= MOST_SAMPLING_RATE) return product;
    }
    const told = this.#selectors.get(selector) ?? this.#interfaces.get(inputInterface);
    if (told !== undefined) return told;
    if (this.#domainRate > 0) return this.#domainRate;
    if (this.#isStale) {
      this.#isStale = false;
      const rates = new Set([...this.#selectors.values(), ...this.#interfaces.values()]);
      this.#unanimous = rates.size === 1 ? ([...rates][0] as number) : 0;
    }
    return this.#unanimous;
  }
}

function put<Value>(map: Map<number, Value>, key: number, value: Value): void {
  map.delete(key);
  if (map.size >= MOST_ENTRIES) map.delete(map.keys().next().value as number);
  map.set(key, value);
}
