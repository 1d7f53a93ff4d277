/**
 * What a kind of filter is, as data: whom it is for, what it recognises and cannot do, which traffic it looks at. Owns
 * the shape; each kind stands in a file of its own under `kinds/`.
 */
import type { Family } from '../net/prefix.ts';
import type { FilterVector } from './filter-vector.ts';
import type { FilterFinding, FilterView } from './judgement.ts';
import type { KindText } from './kind-text.ts';

export type FilterTransport = 'tcp' | 'udp' | 'icmp';

/** Inclusive. `side`: whose port in the packet, as the wire's `port.src` and `port.dst`. */
export interface KindPorts {
  readonly side: 'src' | 'dst';
  readonly transport: 'tcp' | 'udp';
  readonly start: number;
  readonly end: number;
}

/**
 * By what a kind tells good traffic, beside the limit that it sets each source: each packet alone, what was seen of the
 * source a while ago, or the connection that the packet belongs to.
 */
export type FilterMemory = 'none' | 'source' | 'connection';

export interface FilterKind {
  /** On the wire, in rows, and in what an agent reports: never changes, never becomes another kind's. */
  readonly id: number;
  /** Lower case, digits and hyphens; as stable as the id. */
  readonly name: string;
  readonly label: string;
  /** Which traffic it passes and which it discards, for whoever switches it on. */
  readonly description: string;
  /** What it cannot do and what it needs, a sentence each. */
  readonly limits: readonly string[];
  readonly families: readonly Family[];
  readonly transports: readonly FilterTransport[];
  /** Of the destination: a kind without well-known ports must be told which to look at. */
  readonly destinationPorts: 'none' | 'optional' | 'required';
  /** Looked at on a side for which the request names no ports. A side without any: all ports. */
  readonly defaultPorts: readonly KindPorts[];
  readonly memory: FilterMemory;
  /** Answers must leave through the router that saw the question. */
  readonly needsReturnPath: boolean;
  /** The shortest prefix that `dst` may have, where a kind cannot be had for any subnet. */
  readonly shortestPrefix?: { readonly [family in Family]?: number };
  readonly enforcement: KindEnforcement;
}

/** How a kind is enforced: its meaning, its form for the kernel, and packets that both are held to. */
export interface KindEnforcement {
  /**
   * What conntrack must see of the traffic that the filter looks at, and of what goes back. `flows`: all of it. `all but SYNs`:
   * those to the filter's TCP ports are kept from it, as a SYN proxy needs; the rest is seen.
   */
  readonly tracking: 'nothing' | 'flows' | 'all but SYNs';
  /** The transports that `tracking` is about; absent: all of the kind's. */
  readonly tracks?: readonly FilterTransport[];
  /**
   * For the first seconds in force, what only memory could vouch for passes, and is learned where the kind says so: flows
   * that ran before must not break. What is wrong by its form is discarded from the first moment on.
   */
  readonly settles: boolean;
  /**
   * What a source has opened is remembered so long after its last packet; absent: the kind remembers nothing. `sources`:
   * any traffic of the source to the destination is known then. `flows`: that between the same two ports alone. The number
   * is how many are remembered at most, usually `mostRemembered`: beyond, newcomers are not, until others are forgotten.
   */
  readonly remembers?:
    | { readonly seconds: number; readonly sources: number }
    | { readonly seconds: number; readonly flows: number };
  readonly meters: readonly KindMeter[];
  /**
   * Of kinds with a SYN proxy: the meter that counts the connections which the router opens for clients that have brought back
   * a cookie; a source above it is `refused` for so long. Nobody is counted by packets that bear his address without him.
   */
  readonly openings?: { readonly meter: string; readonly refusedSeconds: number };
  /** The meaning: decides one packet that the filter looks at. Never reads how it is compiled. */
  readonly judge: (view: FilterView) => FilterFinding;
  /** The same in nft's words, by transport; a packet that gets past the last line is discarded. */
  readonly compile: (text: KindText) => { readonly [transport in FilterTransport]?: readonly string[] };
  readonly vectors: readonly FilterVector[];
}

/**
 * A bound on packets, kept apart for each source and destination, or for each destination. Those it has no place for share a
 * bound of their own (meter-bounds.ts).
 */
export interface KindMeter {
  /** Lower-case letters; one of the kind's. */
  readonly name: string;
  readonly of: 'source' | 'destination';
  readonly packetsPerSecond: number;
  /** Packets that pass at once. */
  readonly burst: number;
  /** How many are told apart; absent: `mostRemembered`. */
  readonly most?: number;
}

/** Whether the router completes handshakes in the place of the filter's destinations. */
export function hasSynProxy(kind: FilterKind): boolean {
  return kind.enforcement.tracking === 'all but SYNs';
}

/**
 * The kernel's own bound for a set that packets write to. For a smaller one it makes room at once, 16 octets a place in each
 * filter's set: 16 384 places are 256 KiB, filled or not.
 */
export const mostRemembered = 65_535;

/** How long a filter settles. */
export const settlingSeconds = 10;

/** What every kind that goes by a packet's form has to say of itself. */
export const copiesPass =
  'It goes by the form of packets: a flood that copies good ones is held only by the limit on each source; ' +
  'forged sources share none but ratelimit, as long as they can be told apart.';

/** Of kinds that pass what clients send and nothing else. */
export const ownQuestionsLost =
  'Answers to what the server itself asks from the filtered port are discarded, unless a rule accepts them.';

/** Of kinds whose signature was not held against captures. */
export const fromDescription =
  "Its signature is taken from the protocol's description and was not held against recorded traffic yet.";

export const bothFamilies: readonly Family[] = [4, 6];

/** Destination ports of one transport; `end` absent: one port. */
export function to(transport: 'tcp' | 'udp', start: number, end: number = start): KindPorts {
  return { side: 'dst', transport, start, end };
}
