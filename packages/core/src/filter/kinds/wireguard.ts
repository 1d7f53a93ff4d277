/** Owns filter kind 20, WireGuard: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { ofExactly, reaches } from '../payload-text.ts';
import { wireguardVectors } from './wireguard.vectors.ts';

/**
 * The protocol's paper, 5.4: a type and three zero octets, then by type. Data (5.4.6) carries its counter as 64 bits,
 * lowest octet first, from 0 on; a key is given up after 180 seconds (6.1), so that the highest three octets stay zero
 * below 6 thousand million packets a second. Its length says nothing: the paper pads to multiples of 16, but the kernel
 * and wireguard-go stop at the device's MTU (1420 by default, which is none), and boringtun does not pad.
 */
const handshakes: readonly { readonly type: number; readonly octets: number; readonly name: string }[] = [
  { type: 1, octets: 148, name: "a handshake's initiation" },
  { type: 2, octets: 92, name: "a handshake's response" },
  { type: 3, octets: 64, name: 'a cookie reply' },
];
const leastData = 32;

function judge({ payload }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const type = octetsAt(payload, 0, 1);
  if (type === undefined || octetsAt(payload, 1, 3) !== 0) {
    return { outcome: 'discard', why: 'no message type with three zero octets behind it' };
  }
  if (type === 4) {
    if (payload.length < leastData)
      return { outcome: 'discard', why: `${payload.length} octets of data, not 32 or more` };
    if (octetsAt(payload, 13, 3) !== 0)
      return { outcome: 'discard', why: 'data with a counter that no session reaches' };
    return { outcome: 'pass', why: 'WireGuard data', charges: ['data'] };
  }
  const handshake = handshakes.find((each) => each.type === type);
  if (handshake === undefined) return { outcome: 'discard', why: `message type ${type}, not 1 to 4` };
  if (payload.length !== handshake.octets) {
    return { outcome: 'discard', why: `${handshake.name} of ${payload.length} octets, not ${handshake.octets}` };
  }
  return { outcome: 'pass', why: handshake.name, charges: ['handshake'] };
}

function compile({ above, branch, discard, pass }: KindText) {
  const data = branch('data', [`${above('data')} ${discard}`, pass]);
  const handshake = branch('handshake', [`${above('handshake')} ${discard}`, pass]);
  return {
    udp: [
      `@ih,0,128 & 0xffffffff000000000000000000ffffff == 0x04000000000000000000000000000000 ${reaches(leastData)} ${data}`,
      ...handshakes.flatMap(({ type, octets }) => ofExactly(octets, `@ih,0,32 0x0${type}000000`, handshake, discard)),
    ],
  };
}

export const wireguard: FilterKind = {
  id: 20,
  name: 'wireguard',
  label: 'WireGuard',
  description:
    "Passes packets of the form of WireGuard's four messages: type, three zero bytes, and 148, 92 or 64 bytes in all; " +
    'data has 32 bytes or more and a counter as a running session has it. From each source it passes 50 handshakes and ' +
    '200,000 packets of data a second.',
  limits: [
    copiesPass,
    'Initiations from forged sources reach the server up to ratelimit: it answers a flood of them with cookies.',
    'Variants that disguise the protocol, such as AmneziaWG, are not recognised.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 51820)],
  memory: 'none',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    meters: [
      { name: 'data', of: 'source', packetsPerSecond: 200_000, burst: 200_000 },
      { name: 'handshake', of: 'source', packetsPerSecond: 50, burst: 200 },
    ],
    judge,
    compile,
    vectors: wireguardVectors,
  },
};
