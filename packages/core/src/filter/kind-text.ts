/**
 * What a kind writes its nft lines with: names and statements that are the filter's own. Types only; the compiler makes
 * them (`nftables/filter-text.ts`). A kind writes conditions on the packet itself: the transport's header from octet 0
 * as `@th`, its payload as `@ih`, loads of at most 128 bits. Nothing of a user's request enters a line as text.
 */
import type { Family } from '../net/prefix.ts';
import type { Filter } from './filter.ts';

export interface KindText {
  readonly family: Family;
  readonly filter: Filter;
  /** Statements that end a line. */
  readonly pass: string;
  readonly discard: string;
  /** Conditions, to stand at a line's beginning. */
  readonly established: string;
  readonly known: string;
  readonly settling: string;
  /**
   * Of kinds that keep SYNs from conntrack. Notes the SYN's ports and sequence number for some seconds; where there is no room,
   * the line does not match. This and the next one overwrite the packet's mark: it must not be forwarded after them.
   */
  readonly noteSyn: string;
  /** A SYN with this segment's ports and sequence number was noted. */
  readonly repeatsSyn: string;
  /** The source has lately opened more connections than the kind's `openings` allow. */
  readonly refused: string;
  /**
   * Remembers the source or flow, or goes on remembering it. Stands before the statement that ends the line. Where nothing
   * more can be remembered, the line does not match: what follows has to decide the same.
   */
  readonly remember: string;
  /**
   * A condition that counts the packet and holds when it is above the meter of that name. Other conditions may stand before it,
   * `discard` alone behind it: it is no word of nft's, and the two become a jump to the meter's chain.
   */
  above(meter: string): string;
  /** Makes a chain of the filter's own and gives the statement that goes there; never returns from it. */
  branch(name: string, lines: readonly string[]): string;
}
