/**
 * Owns when a subnet is attacked rather than single addresses of it. Pure.
 *
 * What is part of attacks on its addresses is not in the sums to begin with; of those that are too much in this very moment, up to
 * four may become attacks of their own, so they are taken out here as well. What is left must be too much for the subnet, and
 * no address may have most of it (decision 0131).
 */
import { type Excess, judge, type Limits } from './judge.ts';

/** Addresses of one subnet that are attacked by a vector at a time; with more it is the subnet that is attacked by it. */
export const MOST_ADDRESS_ATTACKS = 4;
/** As many with those that wait for their end: a flood that goes from address to address is on one at a time. */
export const MOST_ADDRESS_ATTACKS_HELD = 8;
const mostOfIt = 0.5;

export interface Amount {
  readonly packets: number;
  readonly bytes: number;
  readonly samples: number;
}

export interface Member extends Amount {
  /** It is too much for this address alone. */
  readonly isExcessive: boolean;
}

/** `whole`: the second of the subnet; `members`: that of its addresses, those with the most of it are enough. */
export function judgeSubnet(whole: Amount, members: readonly Member[], limits: Limits): Excess | undefined {
  const ranked = [...members].sort((a, b) => b.packets - a.packets);
  const apart = ranked.filter(({ isExcessive }) => isExcessive).slice(0, MOST_ADDRESS_ATTACKS);
  const rest = apart.reduce(
    (left, { packets, bytes, samples }) => ({
      packets: left.packets - packets,
      bytes: left.bytes - bytes,
      samples: left.samples - samples,
    }),
    whole,
  );
  const excess = judge({ pps: rest.packets, bps: rest.bytes * 8 }, rest.samples, limits);
  if (excess === undefined) return undefined;
  const metric = excess.metric === 'pps' ? 'packets' : 'bytes';
  const isOneAddress = ranked.some((member) => !apart.includes(member) && member[metric] > mostOfIt * rest[metric]);
  return isOneAddress ? undefined : excess;
}
