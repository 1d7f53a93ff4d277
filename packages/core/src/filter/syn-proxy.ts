/**
 * Owns what the kinds with a SYN proxy share: which TCP packets pass, which the router answers or keeps, the options it
 * offers, and the same as lines for the kernel. Never looks at ports or payloads.
 *
 * The router answers a SYN with a cookie and keeps nothing. An ACK outside of known connections goes to the proxy, which
 * opens the connection to the server when the ACK brings back a cookie and discards it otherwise (nft_synproxy.c,
 * kernel 6.18). No connection is needed in conntrack before that, so a flood of SYNs or ACKs leaves nothing there.
 */
import type { FilterFinding, FilterView } from './judgement.ts';
import type { KindText } from './kind-text.ts';
import { settlingMeter } from './settling-meter.ts';
import { hasFlags, isOpening, judgeSegment, tcpFlag } from './tcp-segment.ts';

/**
 * Said to clients before the server was asked, so one for all servers. MSS: fits behind each of the tunnels
 * (tunnel/mtu.ts: 1430 octets at least) without a clamp, at the price of 5 % more segments of an upload. The window's
 * scale is Linux's, for receive buffers of 4 to 8 MiB.
 */
const offeredMss = { 4: 1390, 6: 1370 } as const;
const offeredWindowScale = 7;

const { fin, syn, rst, ack, urg } = tcpFlag;

/**
 * nft's proxy sums up IPv6 packets as if they were IPv4 (nf_ip_checksum in nft_synproxy.c, 5.3 to 6.18 at least), and
 * drops whatever the network card has not verified: the header's 40 octets, with the source's middle 8 once more. The
 * first 8 octets, which nobody reads in a packet that the proxy keeps, become the complement of those 8: what is added
 * too much is then nothing, and the sum is right where TCP's is. Decision 0095.
 */
const asVerified6 = '@nh,0,64 set @nh,96,64 ^ 0xffffffffffffffff';

export function judgeBehindProxy(view: FilterView): FilterFinding {
  const { payload, settling } = view;
  const segment = judgeSegment(view);
  if ('outcome' in segment) return segment;
  const { flags } = segment;
  if (isOpening(flags)) return { outcome: 'challenge', why: 'a SYN is answered with a cookie' };
  const isAck = (flags & ack) !== 0 && (flags & (syn | fin | rst)) === 0;
  const carriesNothing = (payload?.length ?? 0) === 0;
  // The third packet of a handshake is empty: the router's answer offered no window.
  if (settling && !(isAck && carriesNothing)) {
    const why = 'perhaps part of a connection that ran before the filter';
    return { outcome: 'pass', why, charges: [settlingMeter.name] };
  }
  if (isAck) return { outcome: 'challenge', why: "an ACK has to bring back the router's cookie" };
  return { outcome: 'discard', why: 'part of no known connection' };
}

/**
 * Form needs no line for known connections: conntrack calls a packet with a flaw invalid. A running connection whose
 * empty ACKs are kept from the server goes on: the server sends again, which makes it known. The confirmed one that has no
 * answer is the proxy's own: its SYN or the answer was lost, and the client's probe of the closed window has the
 * proxy's hook send it again.
 */
export function compileBehindProxy(text: KindText, bound?: 'bounds openings'): string[] {
  const { above, branch, discard, established, family, noteSyn, pass, refused, repeatsSyn, settling } = text;
  const offered = `mss ${offeredMss[family]} wscale ${offeredWindowScale} timestamp sack-perm`;
  const proxy = `${family === 6 ? `${asVerified6} ` : ''}synproxy ${offered}`;
  const emptyOrNot = hasFlags(ack, syn | rst | fin);
  const opens = hasFlags(syn, fin | rst | ack);
  const probe = branch('probe', [...stepsToNext(proxy)]);
  // Who is refused takes the connection for open: a reset tells.
  const answers = [
    ...(bound ? [`${emptyOrNot} ${refused} reject with tcp reset`] : []),
    `${emptyOrNot} ${repeatsSyn} ${probe}`,
    `${emptyOrNot} ${proxy}`,
  ];
  const allowed = branch('settled', [`${above(settlingMeter.name)} ${discard}`, pass]);
  const unsettled = branch('settling', [
    // A header of fewer than 20 octets shows no payload; loads of one octet are safe behind a load of three.
    `${emptyOrNot} @th,96,8 >= 0x50 @ih,0,8 & 0 == 0 ${allowed}`,
    ...answers,
    `${hasFlags(fin | ack, syn | rst)} ${allowed}`,
    `${hasFlags(rst, syn | fin | urg)} ${allowed}`,
    `${hasFlags(syn | ack, fin | rst | urg)} ${allowed}`,
  ]);
  return [
    `${established} ${pass}`,
    `${opens} ${noteSyn} ${proxy}`,
    `${opens} ${proxy}`,
    `${settling} ${unsettled}`,
    `ct status & 8 == 8 ${emptyOrNot} ${pass}`,
    ...answers,
  ];
}

/**
 * A client whose handshake's third packet was lost takes the connection for open and its window for closed. It asks with its SYN's
 * sequence number, one less than what the cookie is for, which the proxy discards or opens a connection from that never works.
 * The number is raised by one: as nft cannot add, by what changes in the bits from the lowest zero on. One number in 4096 has more
 * ones below than are looked for here.
 */
function* stepsToNext(proxy: string): Iterable<string> {
  for (let bits = 1; bits <= 12; bits += 1) {
    const mask = 2 ** bits - 1;
    yield `@th,32,32 & ${mask} == ${mask >> 1} tcp sequence set tcp sequence ^ ${mask} ${proxy}`;
  }
}
