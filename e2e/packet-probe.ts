/**
 * Owns telling, by real packets, which destinations a router lets through: one UDP datagram each from the attacker's
 * side, and who of them reaches the customer. Must never look at the router's tables.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress, type RouterPath } from '@levee/lab/router-path.ts';

const ipv4Destination = 14 + 16;
const udpPayload = 14 + 20 + 8;

export interface ProbeOptions {
  /** Of the destination; absent: 9 (discard). */
  readonly port?: number;
  /** Of the source: probes on one path have one each, or they take each other's datagrams. */
  readonly sourcePort?: number;
  /** What follows the number of the round, two octets, in each datagram. */
  readonly payload?: Uint8Array;
}

export class PacketProbe {
  readonly #sender: PacketSocket;
  readonly #receiver: PacketSocket;
  readonly #options: Required<ProbeOptions>;
  #round = 0;

  constructor(path: RouterPath, options: ProbeOptions = {}) {
    this.#options = { port: 9, sourcePort: 40_000, payload: new Uint8Array(2), ...options };
    this.#sender = openPacketSocket(path.attacker, { device: device.attacker });
    // UDP over IPv4 without options: the probe's own datagrams and nothing else.
    const only = [
      { offset: 12, value: 0x0800 },
      { offset: 14 + 20, value: this.#options.sourcePort },
      { offset: 14 + 20 + 2, value: this.#options.port },
    ];
    this.#receiver = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 128, only });
  }

  /**
   * Destinations (dotted IPv4) whose datagram arrived. `sentinel` is one that nothing filters, sent last: when it
   * has arrived, all that were let through before it have, too.
   */
  async reach(destinations: readonly string[], sentinel: string): Promise<Set<string>> {
    const round = ++this.#round;
    const frames = new PreparedFrames(
      [...destinations, sentinel].map((destination) => this.#frame(destination, round)),
    );
    const arrived = new Set<string>();
    const deadline = Date.now() + 10_000;
    this.#sendAll(frames);
    while (!arrived.has(sentinel)) {
      this.#receiver.receive((frame) => {
        const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
        if (view.getUint16(udpPayload) === round) arrived.add(textOf(view.getUint32(ipv4Destination)));
      });
      if (Date.now() > deadline) throw new Error(`the unfiltered datagram to ${sentinel} did not arrive`);
      await delay(1);
    }
    if (this.#receiver.droppedFrames() > 0) throw new Error('the receiver lost frames: what arrived is no evidence');
    if (!destinations.includes(sentinel)) arrived.delete(sentinel);
    return arrived;
  }

  async passes(destination: string, sentinel: string): Promise<boolean> {
    return (await this.reach([destination], sentinel)).has(destination);
  }

  #sendAll(frames: PreparedFrames): void {
    for (let sent = 0; sent < frames.count; )
      sent += this.#sender.send(frames, sent, Math.min(64, frames.count - sent));
  }

  #frame(destination: string, round: number): Uint8Array {
    const { port, sourcePort, payload: rest } = this.#options;
    const payload = Uint8Array.of(round >> 8, round & 255, ...rest);
    return buildFrame({
      family: 4,
      source: BigInt(numberOf('198.51.100.7')),
      destination: BigInt(numberOf(destination)),
      sourceHardware: hardwareAddress.attacker,
      destinationHardware: hardwareAddress.routerOutside,
      id: round & 0xffff,
      transport: { kind: 'udp', sourcePort, destinationPort: port },
      payload,
      totalLength: Math.max(64, 20 + 8 + payload.length),
    });
  }

  [Symbol.dispose](): void {
    this.#sender.close();
    this.#receiver.close();
  }
}

export function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function textOf(value: number): string {
  return [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join('.');
}
