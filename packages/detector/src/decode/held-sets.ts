/**
 * Owns sets of data that came before their template: copies, for a bounded time and of bounded size. What is not asked for
 * in time is counted as dropped, at the exporter that it came from.
 */
import type { DecodeCounts } from '../flow-record.ts';
import type { DecoderLimits } from './limits.ts';
import { countDropped } from './reasons.ts';

/** What keeping a set costs beside its octets. */
const OVERHEAD = 256;

/** Who holds: a domain of an exporter. */
export interface HoldingDomain {
  readonly exporter: { heldOctets: number };
  held: Map<number, HeldSet[]> | undefined;
}

export interface HeldSet {
  readonly domain: HoldingDomain;
  readonly template: number;
  readonly data: Uint8Array;
  readonly sinceMs: number;
  readonly counts: DecodeCounts;
}

export class HeldSets {
  readonly #limits: DecoderLimits;
  /** The oldest first. */
  readonly #all = new Set<HeldSet>();
  #octets = 0;
  #oldestMs = Number.POSITIVE_INFINITY;

  constructor(limits: DecoderLimits) {
    this.#limits = limits;
  }

  get octets(): number {
    return this.#octets;
  }

  hold(
    domain: HoldingDomain,
    template: number,
    data: Uint8Array,
    start: number,
    end: number,
    nowMs: number,
    counts: DecodeCounts,
  ): void {
    const cost = end - start + OVERHEAD;
    const { mostHeldOctets, mostHeldOctetsPerExporter } = this.#limits;
    if (this.#octets + cost > mostHeldOctets || domain.exporter.heldOctets + cost > mostHeldOctetsPerExporter) {
      countDropped(counts, 'template_missing');
      return;
    }
    const held = { domain, template, data: new Uint8Array(data.subarray(start, end)), sinceMs: nowMs, counts };
    domain.held ??= new Map();
    const waiting = domain.held.get(template);
    if (waiting === undefined) domain.held.set(template, [held]);
    else waiting.push(held);
    this.#all.add(held);
    this.#octets += cost;
    domain.exporter.heldOctets += cost;
    if (this.#all.size === 1) this.#oldestMs = nowMs;
  }

  /** What waits for a template, the oldest first; it is held no more. */
  release(domain: HoldingDomain, template: number): readonly HeldSet[] {
    const waiting = domain.held?.get(template);
    if (waiting === undefined) return [];
    domain.held?.delete(template);
    for (const held of waiting) this.#remove(held);
    return waiting;
  }

  expire(nowMs: number): void {
    if (nowMs - this.#oldestMs <= this.#limits.heldMilliseconds) return;
    for (const held of this.#all) {
      this.#oldestMs = held.sinceMs;
      if (nowMs - held.sinceMs <= this.#limits.heldMilliseconds) return;
      const waiting = held.domain.held?.get(held.template);
      // Those of one template wait in order of time, too.
      waiting?.shift();
      if (waiting?.length === 0) held.domain.held?.delete(held.template);
      this.#remove(held);
      countDropped(held.counts, 'template_missing');
    }
    this.#oldestMs = Number.POSITIVE_INFINITY;
  }

  /** Lets go of all that a domain holds, when the domain itself goes. */
  drop(domain: HoldingDomain): void {
    for (const waiting of domain.held?.values() ?? []) {
      for (const held of waiting) {
        this.#remove(held);
        countDropped(held.counts, 'template_missing');
      }
    }
    domain.held = undefined;
  }

  #remove(held: HeldSet): void {
    const cost = held.data.length + OVERHEAD;
    this.#all.delete(held);
    this.#octets -= cost;
    held.domain.exporter.heldOctets -= cost;
    if (this.#all.size === 0) this.#oldestMs = Number.POSITIVE_INFINITY;
  }
}
