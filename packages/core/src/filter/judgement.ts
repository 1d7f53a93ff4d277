/**
 * What a kind's meaning is given of a packet, and what it says of it. Types only: which packets a filter looks at is
 * scope.ts's, order and memory are the evaluator's.
 */
import type { Packet } from '../firewall/packet.ts';
import type { Filter } from './filter.ts';
import type { FilterTransport } from './filter-kind.ts';

export interface FilterView {
  readonly filter: Filter;
  readonly packet: Packet;
  readonly transport: FilterTransport;
  /** What follows the transport's header; undefined: not known. */
  readonly payload: Uint8Array | undefined;
  /** The router has seen this flow in both directions. */
  readonly established: boolean;
  /** The source has opened something at this destination, and it is remembered (of kinds that remember flows: this flow). */
  readonly known: boolean;
  /** The filter is in force for less than `settlingSeconds`. */
  readonly settling: boolean;
}

export type FilterFinding =
  | {
      readonly outcome: 'pass';
      /** Why, after "passes: ": `a DNS question`. */
      readonly why: string;
      /** Names of meters that count it, in order; above one of them it is discarded, and later ones do not count it. */
      readonly charges?: readonly string[];
      /** The source or flow is remembered from now on; only when no meter discards the packet. */
      readonly remembers?: boolean;
    }
  | { readonly outcome: 'discard'; readonly why: string }
  /** The router answers in the destination's place; the packet goes no further. */
  | { readonly outcome: 'challenge'; readonly why: string }
  /** A fact that decides is not known (`explain` without a payload). */
  | { readonly outcome: 'unknown'; readonly why: string };
