/**
 * The demonstration's packets: a reflected flood from 4096 sources and a game's players. Owns addresses, ports and
 * which frames are watched. Must never send.
 */
import { buildFrame } from './packet-build.ts';
import { hardwareAddress } from './router-path.ts';

/** Documentation addresses (RFC 5737, RFC 3849): the customer's in the demonstration. */
export const demoPrefixes = ['203.0.113.0/24', '2001:db8::/32'] as const;
export const demoTarget = '203.0.113.10';
const targetValue = 0xcb00710an;

export const floodPort = 123;
export const gamePort = 27015;

/** What the customer's watching sockets let in; offsets in an Ethernet frame with IPv4 without options. */
export const onlyGame = [
  { offset: 12, value: 0x0800 },
  { offset: 36, value: gamePort },
] as const;
/** One flood packet in sixteen carries this identification: enough to see when the flood stops, cheap to watch. */
const markedId = 0xbeef;
export const onlyMarkedFlood = [
  { offset: 12, value: 0x0800 },
  { offset: 18, value: markedId },
] as const;

const wires = {
  sourceHardware: hardwareAddress.attacker,
  destinationHardware: hardwareAddress.routerOutside,
};

/** Large answers of time servers that nobody asked: source port 123, 468 bytes. */
export function floodFrames(): Uint8Array[] {
  return Array.from({ length: 4096 }, (_, index) =>
    buildFrame({
      ...wires,
      family: 4,
      // A multiplicative hash spreads the sources over 11.0.0.0/8 … 74.0.0.0/8, all unicast.
      source: BigInt(((11 + (index & 63)) << 24) | ((Math.imul(index + 1, 2654435761) >>> 8) & 0xffffff)),
      destination: targetValue,
      id: index % 16 === 0 ? markedId : index & 0x7fff,
      transport: { kind: 'udp', sourcePort: floodPort, destinationPort: 1024 + (index % 60000) },
      totalLength: 468,
    }),
  );
}

/** 64 players' small updates. */
export function gameFrames(): Uint8Array[] {
  return Array.from({ length: 64 }, (_, index) =>
    buildFrame({
      ...wires,
      family: 4,
      source: 0x64400000n + BigInt(index + 1),
      destination: targetValue,
      id: index,
      transport: { kind: 'udp', sourcePort: 40000 + index, destinationPort: gamePort },
      totalLength: 96,
    }),
  );
}
