/**
 * Owns telling, by real TCP segments, how many of them a router lets through, in either direction. They belong to no
 * connection of a kernel's: what flags they bear is the caller's matter. Must never look at the router's tables.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress, type RouterPath } from '@levee/lab/router-path.ts';
import { numberOf, textOf } from './packet-probe.ts';

export interface Segment {
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly flags: number;
}

const identification = 14 + 4;
const protocol = 14 + 9;
const destination = 14 + 16;
const TCP = 6;

export class TcpProbe {
  readonly #attacker: PacketSocket;
  readonly #customer: PacketSocket;
  #round = 0;

  constructor(path: RouterPath) {
    this.#attacker = openPacketSocket(path.attacker, { device: device.attacker, receiveBytes: 128 });
    this.#customer = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 128 });
  }

  /** How many of `count` such segments reach the customer. `sentinel`: an address that nothing filters, asked last. */
  towardsCustomer(segment: Segment, count: number, sentinel: string): Promise<number> {
    const hardware = { from: hardwareAddress.attacker, to: hardwareAddress.routerOutside };
    return this.#send(this.#attacker, this.#customer, hardware, segment, count, sentinel);
  }

  /** The customer sends one itself; resolves when it is outside. */
  async fromCustomer(segment: Segment): Promise<void> {
    const hardware = { from: hardwareAddress.customer, to: hardwareAddress.routerInside };
    await this.#send(this.#customer, this.#attacker, hardware, segment, 0, segment.destination);
  }

  async #send(
    sender: PacketSocket,
    receiver: PacketSocket,
    hardware: { readonly from: string; readonly to: string },
    segment: Segment,
    count: number,
    sentinel: string,
  ): Promise<number> {
    const id = ++this.#round;
    const frame = (to: string) => {
      const { source, sourcePort, destinationPort, flags } = segment;
      return buildFrame({
        family: 4,
        source: BigInt(numberOf(source)),
        destination: BigInt(numberOf(to)),
        sourceHardware: hardware.from,
        destinationHardware: hardware.to,
        id,
        transport: { kind: 'tcp', sourcePort, destinationPort, flags, sequence: id, acknowledgement: 1 },
      });
    };
    const destinations = [...Array<string>(count).fill(segment.destination), sentinel];
    const frames = new PreparedFrames(destinations.map(frame));
    for (let sent = 0; sent < frames.count; ) sent += sender.send(frames, sent, Math.min(64, frames.count - sent));
    let arrived = 0;
    let isOver = false;
    const deadline = Date.now() + 10_000;
    while (!isOver) {
      receiver.receive((received) => {
        const view = new DataView(received.buffer, received.byteOffset, received.byteLength);
        if (received.length < 54 || view.getUint8(protocol) !== TCP || view.getUint16(identification) !== id) return;
        if (textOf(view.getUint32(destination)) === sentinel) isOver = true;
        else arrived += 1;
      });
      if (Date.now() > deadline) throw new Error(`the segment to ${sentinel} did not arrive`);
      await delay(1);
    }
    if (receiver.droppedFrames() > 0) throw new Error('the receiver lost frames: what arrived is no evidence');
    return arrived;
  }

  [Symbol.dispose](): void {
    this.#attacker.close();
    this.#customer.close();
  }
}
