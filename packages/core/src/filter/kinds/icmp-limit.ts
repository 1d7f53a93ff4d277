/** Owns filter kind 4, ICMP limit: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { type Family, hostMask, prefixContainsAddress } from '../../net/prefix.ts';
import type { Filter } from '../filter.ts';
import { bothFamilies, type FilterKind } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { icmpLimitVectors } from './icmp-limit.vectors.ts';

interface Messages {
  readonly echoRequest: number;
  readonly echoReply: number;
  /** Types, whatever their code. Each quotes the packet that it is about behind its first 8 octets. */
  readonly errors: readonly number[];
  /** Of what an error quotes: the first octet's upper half, and where the source's address is, in octets. */
  readonly quotedVersion: number;
  readonly quotedSource: { readonly at: number; readonly octets: number };
}

/**
 * RFC 792 and RFC 1812: unreachable, time exceeded, parameter problem; source quench is void (RFC 6633). RFC 4890, 4.3:
 * the same and packet too big. All else is for one link alone, or asks hosts for what they need not tell.
 */
const messages: Record<Family, Messages> = {
  4: { echoRequest: 8, echoReply: 0, errors: [3, 11, 12], quotedVersion: 4, quotedSource: { at: 12, octets: 4 } },
  6: { echoRequest: 128, echoReply: 129, errors: [1, 2, 3, 4], quotedVersion: 6, quotedSource: { at: 8, octets: 16 } },
};

function judge({ filter, packet, payload }: FilterView): FilterFinding {
  const { icmpType: type, icmpCode: code, fragment } = packet;
  if (fragment !== undefined && fragment.offsetBytes > 0) return { outcome: 'discard', why: 'a later fragment' };
  if (type === undefined || code === undefined) {
    if (payload === undefined) return { outcome: 'unknown', why: 'the type decides' };
    return { outcome: 'discard', why: 'a message cut off in its first octets' };
  }
  const { echoRequest, echoReply, errors } = messages[packet.family];
  if (type === echoRequest && code === 0) {
    return { outcome: 'pass', why: 'an echo request', charges: ['echo', 'requests'] };
  }
  if (type === echoReply && code === 0) return { outcome: 'pass', why: 'an echo reply', charges: ['echo', 'replies'] };
  if (!errors.includes(type)) return { outcome: 'discard', why: `type ${type}, code ${code}` };
  if (payload === undefined) return { outcome: 'unknown', why: 'the packet that it quotes decides' };
  if (!quotesOwn(filter, packet.family, payload)) {
    return { outcome: 'discard', why: 'an error about a packet that is not of the destination' };
  }
  return { outcome: 'pass', why: `an error, type ${type}`, charges: ['error', 'errors'] };
}

/** Hosts of the filter's destination sent what the error is about. */
function quotesOwn({ dst }: Filter, family: Family, quoted: Uint8Array): boolean {
  const { quotedVersion, quotedSource } = messages[family];
  const source = quoted.subarray(quotedSource.at, quotedSource.at + quotedSource.octets);
  if (source.length < quotedSource.octets || (quoted[0] ?? 0) >> 4 !== quotedVersion) return false;
  const value = source.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
  return prefixContainsAddress(dst, { family, value });
}

/** Three octets of the type are loaded, as later fragments come here: see nftables/rule-text.ts. */
function compile({ above, branch, discard, family, filter, pass }: KindText) {
  const { echoRequest, echoReply, errors } = messages[family];
  const bounded = (name: string, each: string, sum: string) =>
    branch(name, [`${above(each)} ${discard}`, `${above(sum)} ${discard}`, pass]);
  const error = bounded('error', 'error', 'errors');
  const echo = (type: number) => `@th,0,24 & 0xffff00 == ${type * 0x10000}`;
  return {
    icmp: [
      `${echo(echoRequest)} ${bounded('request', 'echo', 'requests')}`,
      `${echo(echoReply)} ${bounded('reply', 'echo', 'replies')}`,
      ...errors.map((type) => `@th,0,24 & 0xff0000 == ${type * 0x10000} ${quotesOwnText(filter, family)} ${error}`),
    ],
  };
}

function quotesOwnText({ dst }: Filter, family: Family): string {
  const { quotedVersion, quotedSource } = messages[family];
  const bits = quotedSource.octets * 8;
  const source = `@th,${64 + quotedSource.at * 8},${bits}`;
  const mask = hostMask(family, 0) ^ hostMask(family, dst.length);
  const hexadecimal = (value: bigint) => `0x${value.toString(16)}`;
  const version = `@th,64,8 & 0xf0 == ${hexadecimal(BigInt(quotedVersion * 16))}`;
  if (dst.length === bits) return `${version} ${source} ${hexadecimal(dst.value)}`;
  return `${version} ${source} & ${hexadecimal(mask)} == ${hexadecimal(dst.value)}`;
}

export const icmpLimit: FilterKind = {
  id: 4,
  name: 'icmp-limit',
  label: 'ICMP limit',
  description:
    'Passes echo requests and replies, 20 a second of each source and 1000 of each in sum, and errors about packets ' +
    'that the destination has sent, 100 a second of each source and 1000 in sum: unreachable, packet too big, time ' +
    'exceeded, parameter problem. Other ICMP is discarded.',
  limits: [
    'One echo request is like another: during a flood from many sources wanted ones are lost too.',
    'That the destination sent what an error quotes is told by the address alone: a flood that quotes it is held by the ' +
      'limits only.',
    'Echo requests that are larger than a packet do not get through: their later fragments are discarded.',
  ],
  families: bothFamilies,
  transports: ['icmp'],
  destinationPorts: 'none',
  defaultPorts: [],
  memory: 'none',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    meters: [
      { name: 'echo', of: 'source', packetsPerSecond: 20, burst: 50 },
      { name: 'requests', of: 'destination', packetsPerSecond: 1000, burst: 1000 },
      { name: 'replies', of: 'destination', packetsPerSecond: 1000, burst: 1000 },
      // One router may have to say "too big" to many connections at once.
      { name: 'error', of: 'source', packetsPerSecond: 100, burst: 500 },
      { name: 'errors', of: 'destination', packetsPerSecond: 1000, burst: 2000 },
    ],
    judge,
    compile,
    vectors: icmpLimitVectors,
  },
};
