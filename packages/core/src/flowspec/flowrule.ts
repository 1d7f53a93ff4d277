/**
 * Owns what a flowrule is: one FlowSpec route (RFC 8955, 8956) as a value, its components' bounds and words, and the
 * canonical form that is stored and answered. Never checks anything: that is `parse-flowrule.ts`.
 */

import { protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import type { flowActions, flowComponents } from '@levee/contract/schemas/flowrule.ts';
import { tcpFlagBits } from '../firewall/wire.ts';
import type { Prefix } from '../net/prefix.ts';
import type { FlagBits, FlagExpression } from './flag-expression.ts';
import type { NumberKind, NumberSet } from './number-set.ts';

export type FlowComponent = (typeof flowComponents)[number];
export type FlowAction = (typeof flowActions)[number];

const octet: NumberKind = { maximum: 255 };
const port: NumberKind = { maximum: 65535 };

/** The word for a number is the first that contract lists for it. */
const protocolWords = new Map<number, string>();
for (const name of protocolNames) {
  const number = protocolNumbers[name];
  if (number !== null && !protocolWords.has(number)) protocolWords.set(number, name);
}

const protocol: NumberKind = {
  maximum: 255,
  numberOf: (word) => protocolNumbers[protocolNames.find((name) => name === word) ?? 'any'] ?? undefined,
  wordOf: (number) => protocolWords.get(number),
};

/** Components that are sets of numbers. */
export const numberKinds = {
  protocol,
  port,
  'destination-port': port,
  'source-port': port,
  'icmp-type': octet,
  'icmp-code': octet,
  // The IP total length, or, for IPv6, its payload and header.
  'packet-length': { maximum: 65535 },
  dscp: { maximum: 63 },
  // RFC 8956, 3.7: IPv6 alone.
  'flow-label': { maximum: 0xfffff },
} as const satisfies Partial<Record<FlowComponent, NumberKind>>;

export type NumberComponent = keyof typeof numberKinds;

/** Components that are conditions on bits. Fragment: RFC 8955, 4.2.2.12. */
export const flagKinds = {
  'tcp-flags': tcpFlagBits,
  fragment: { 'dont-fragment': 1, 'is-fragment': 2, 'first-fragment': 4, 'last-fragment': 8 },
} as const satisfies Partial<Record<FlowComponent, FlagBits>>;

export type FlagComponent = keyof typeof flagKinds;

/** What becomes of a packet that matches (RFC 8955, 7). */
export type FlowTreatment =
  | { readonly action: 'discard' }
  | { readonly action: 'rate-limit'; readonly bytesPerSecond: number }
  | { readonly action: 'redirect'; readonly routeTarget: string }
  | { readonly action: 'mark'; readonly dscp: number }
  /** A route of its own kind, to the destination as a whole (RFC 7999); no components. */
  | { readonly action: 'blackhole' };

export interface Flowrule {
  readonly dst: Prefix;
  readonly source?: Prefix;
  readonly numbers: Readonly<Partial<Record<NumberComponent, NumberSet>>>;
  readonly flags: Readonly<Partial<Record<FlagComponent, FlagExpression>>>;
  readonly treatment: FlowTreatment;
}

/** On the wire: canonical texts, keys in this order, absent what is not set. Equal rules have equal JSON text. */
export interface CanonicalFlowrule {
  readonly dst: string;
  readonly components: Readonly<Partial<Record<FlowComponent, string>>>;
  readonly action: FlowAction;
  readonly ratelimit?: number;
  readonly redirect_target?: string;
  readonly mark_dscp?: number;
}
