/**
 * Owns what the kinds that look at all of TCP share: which combinations of flags a segment can have, and conditions on
 * them for the kernel.
 */
import type { FilterFinding, FilterView } from './judgement.ts';

export const tcpFlag = { fin: 0x01, syn: 0x02, rst: 0x04, psh: 0x08, ack: 0x10, urg: 0x20 } as const;

const { fin, syn, rst, ack, urg } = tcpFlag;
const names = Object.entries(tcpFlag);

/**
 * RFC 9293, 3.5 and 3.10.7: every segment but the first SYN and some resets carries ACK; SYN, FIN and RST exclude one
 * another. PSH, ECE, CWR and AE go with any. The list is also conntrack's (tcp_valid_flags in nf_conntrack_proto_tcp.c),
 * which calls everything else invalid, so that no line for the kernel need say it.
 */
const possible: ReadonlySet<number> = new Set([
  syn,
  syn | urg,
  syn | ack,
  rst,
  rst | ack,
  fin | ack,
  fin | ack | urg,
  ack,
  ack | urg,
]);

/** Why no TCP sends a segment with these flags, the header's octet 13; undefined: some do. */
function findFlaw(flags: number): string | undefined {
  if (possible.has(flags & (fin | syn | rst | ack | urg))) return undefined;
  const set = names.filter(([, bit]) => (flags & bit) !== 0).map(([name]) => name.toUpperCase());
  if (set.length === 0) return 'no flags, which no TCP sends';
  return set.length === 1 ? `${set[0]} without ACK` : `the flags ${set.join(', ')}, which no TCP sends together`;
}

/** What a segment's form and its connection decide; the flags of one that has no flaw and belongs to no known connection. */
export function judgeSegment({ packet, payload, established }: FilterView): FilterFinding | { readonly flags: number } {
  const { tcpFlags: flags } = packet;
  if (flags === undefined) {
    if (payload === undefined) return { outcome: 'unknown', why: 'the flags decide' };
    return { outcome: 'discard', why: 'a TCP header cut off before its flags' };
  }
  const flaw = findFlaw(flags);
  if (flaw !== undefined) return { outcome: 'discard', why: flaw };
  return established ? { outcome: 'pass', why: 'part of a known connection' } : { flags };
}

/** A new connection's first segment. */
export function isOpening(flags: number): boolean {
  return (flags & (syn | fin | rst | ack)) === syn;
}

/** nft's condition on octet 13 (RFC 9293, 3.1), loaded as the last of three: see nftables/rule-text.ts. */
export function hasFlags(set: number, unset: number): string {
  return `@th,88,24 & 0x${(set | unset).toString(16)} == 0x${set.toString(16)}`;
}
