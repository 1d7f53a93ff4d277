/**
 * A client made of single packets from any source address: what it sends is exactly what is asked for, and it sees which TCP
 * segments come back and which arrive behind the router. Owns its sockets; must never look at the router's tables.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseAddress } from '@levee/core/net/address.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import type { PacketSpec } from '@levee/lab/packet-spec.ts';
import { device, hardwareAddress } from '@levee/lab/router-path.ts';
import { type FilteredPath, server } from './filtered-path.ts';

export interface Segment {
  readonly family: Family;
  readonly source: bigint;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly flags: number;
  readonly sequence?: number;
  readonly acknowledgement?: number;
}

/** Of a TCP segment on one of the wires. */
export interface Seen extends Required<Segment> {
  readonly destination: bigint;
}

const ethernetBytes = 14;
const firstSource = { 4: 0xc6336400n, 6: 0xfd77n << 112n } as const;
/** A port of the server's that no filter looks at (discard). */
const openPort = 9;

/** An address that is nobody's but whose answers come back to the client's side. */
export function strangersAddress(family: Family, number: number): bigint {
  // IPv6 sources are told apart by /64.
  return firstSource[family] + (BigInt(number) << (family === 6 ? 64n : 0n));
}

export function serverAddress(family: Family): bigint {
  const parsed = parseAddress(server[family]);
  if (!parsed.ok) throw new Error(server[family]);
  return parsed.address.value;
}

export function segmentFrame(segment: Segment): Uint8Array {
  const { family, source, flags, sourcePort, destinationPort, sequence, acknowledgement } = segment;
  const numbers = {
    ...(sequence !== undefined && { sequence }),
    ...(acknowledgement !== undefined && { acknowledgement }),
  };
  return frameOf({
    family,
    source,
    destination: serverAddress(family),
    transport: { kind: 'tcp', sourcePort, destinationPort, flags, ...numbers },
  });
}

/** Of a packet from the client's side to the router. */
export function frameOf(spec: Omit<PacketSpec, 'id' | 'sourceHardware' | 'destinationHardware'>): Uint8Array {
  const hardware = { sourceHardware: hardwareAddress.attacker, destinationHardware: hardwareAddress.routerOutside };
  return buildFrame({ id: 1, ...hardware, ...spec });
}

export class RawClient {
  readonly #sender: PacketSocket;
  readonly #outside: PacketSocket;
  readonly #inside: PacketSocket;
  /** Segments that came back to the client's side, oldest first. */
  readonly answers: Seen[] = [];
  /** Segments that went to the server. */
  readonly arrivals: Seen[] = [];
  /** Datagrams and messages that went to the server, as frames. */
  readonly others: Uint8Array[] = [];
  #sentinels = 0;
  #arrivedSentinels = 0;

  constructor(path: FilteredPath) {
    this.#sender = openPacketSocket(path.client, { device: device.attacker });
    this.#outside = openPacketSocket(path.client, { device: device.attacker, receiveBytes: 256 });
    this.#inside = openPacketSocket(path.server, { device: device.customer, receiveBytes: 2048 });
  }

  /** Until all of it that gets through has arrived. */
  async send(...frames: readonly Uint8Array[]): Promise<void> {
    this.#sentinels += 1;
    const sentinel = frameOf({
      family: 4,
      source: strangersAddress(4, 250),
      destination: serverAddress(4),
      transport: { kind: 'udp', sourcePort: 40_000, destinationPort: openPort },
    });
    const prepared = new PreparedFrames([...frames, sentinel]);
    for (let sent = 0; sent < prepared.count; ) sent += this.#sender.send(prepared, sent);
    const deadline = Date.now() + 10_000;
    for (this.look(); this.#arrivedSentinels < this.#sentinels; this.look()) {
      if (Date.now() > deadline) throw new Error('the datagram that no filter looks at did not arrive');
      await delay(1);
    }
  }

  /** Takes note of what has come meanwhile. */
  look(): void {
    this.#outside.receive((frame) => {
      const seen = segmentOf(frame);
      if (seen) this.answers.push(seen);
    });
    this.#inside.receive((frame) => {
      const seen = segmentOf(frame);
      if (seen) this.arrivals.push(seen);
      else if (isSentinel(frame)) this.#arrivedSentinels += 1;
      // What hosts tell their own link goes to many.
      else if (((frame[0] as number) & 1) === 0) this.others.push(frame.slice());
    });
    if (this.#outside.droppedFrames() + this.#inside.droppedFrames() > 0) {
      throw new Error('a receiver lost frames: what arrived is no evidence');
    }
  }

  [Symbol.dispose](): void {
    for (const socket of [this.#sender, this.#outside, this.#inside]) socket.close();
  }
}

function isSentinel(frame: Uint8Array): boolean {
  const view = new DataView(frame.buffer, frame.byteOffset);
  return view.getUint16(12) === 0x0800 && frame[23] === 17 && view.getUint16(ethernetBytes + 22) === openPort;
}

/** Without extension headers and IP options. */
function segmentOf(frame: Uint8Array): Seen | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const family = view.getUint16(12) === 0x86dd ? 6 : 4;
  if (frame[family === 4 ? ethernetBytes + 9 : ethernetBytes + 6] !== 6) return undefined;
  const address = (at: number): bigint =>
    family === 4 ? BigInt(view.getUint32(at)) : (view.getBigUint64(at) << 64n) | view.getBigUint64(at + 8);
  const addresses = ethernetBytes + (family === 4 ? 12 : 8);
  const header = ethernetBytes + (family === 4 ? 20 : 40);
  return {
    family,
    source: address(addresses),
    destination: address(addresses + (family === 4 ? 4 : 16)),
    sourcePort: view.getUint16(header),
    destinationPort: view.getUint16(header + 2),
    sequence: view.getUint32(header + 4),
    acknowledgement: view.getUint32(header + 8),
    flags: view.getUint8(header + 13),
  };
}
