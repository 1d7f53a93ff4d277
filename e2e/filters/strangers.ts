/**
 * Datagrams that nobody asked for, each from a forged source of its own, and how many of them arrive behind the router. Owns
 * its sockets and the addresses 198.51.0.0/16; must never look at the router's tables.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress } from '@levee/lab/router-path.ts';
import type { FilteredPath } from './filtered-path.ts';

const server = 0xcb007107n;
/** 198.51.100.0: what is sent first comes from the next one. */
const sources = 0xc6336400;
const mostAtOnce = 250;
/** A port of the server's that no filter looks at (discard). */
const openPort = 9;
const destinationPort = 14 + 20 + 2;

export class Strangers {
  readonly #sender: PacketSocket;
  readonly #receiver: PacketSocket;
  #id = 0;

  constructor(path: FilteredPath) {
    this.#sender = openPacketSocket(path.client, { device: device.attacker });
    // IPv4 from 198.51.…: nobody else of this path sends from there.
    const only = [
      { offset: 12, value: 0x0800 },
      { offset: 14 + 12, value: 0xc633 },
    ];
    this.#receiver = openPacketSocket(path.server, { device: device.customer, receiveBytes: 128, only });
  }

  /** How many arrived. The first is from the source of that number, the next from the next one; 1 … 30,000. */
  async send(port: number, payloads: readonly Uint8Array[], firstSource = 1): Promise<number> {
    let arrived = 0;
    for (let start = 0; start < payloads.length; start += mostAtOnce) {
      arrived += await this.#sendSome(port, payloads.slice(start, start + mostAtOnce), firstSource + start);
    }
    return arrived;
  }

  async #sendSome(port: number, payloads: readonly Uint8Array[], firstSource: number): Promise<number> {
    const frames = payloads.map((payload, index) => this.#frame(firstSource + index, port, payload));
    // Sent last: when it has arrived, all that were let through before it have, too.
    const prepared = new PreparedFrames([...frames, this.#frame(firstSource, openPort, new Uint8Array())]);
    for (let sent = 0; sent < prepared.count; ) sent += this.#sender.send(prepared, sent);
    const deadline = Date.now() + 10_000;
    let arrived = 0;
    for (let over = false; !over; ) {
      this.#receiver.receive((frame) => {
        const to = new DataView(frame.buffer, frame.byteOffset).getUint16(destinationPort);
        if (to === port) arrived += 1;
        if (to === openPort) over = true;
      });
      if (Date.now() > deadline) throw new Error('the datagram that no filter looks at did not arrive');
      if (!over) await delay(1);
    }
    if (this.#receiver.droppedFrames() > 0) throw new Error('the receiver lost frames: what arrived is no evidence');
    return arrived;
  }

  #frame(source: number, port: number, payload: Uint8Array): Uint8Array {
    this.#id = (this.#id % 0xffff) + 1;
    return buildFrame({
      family: 4,
      source: BigInt(sources + source),
      destination: server,
      sourceHardware: hardwareAddress.attacker,
      destinationHardware: hardwareAddress.routerOutside,
      id: this.#id,
      transport: { kind: 'udp', sourcePort: 40_000, destinationPort: port },
      totalLength: 28 + payload.length,
      payload,
    });
  }

  [Symbol.dispose](): void {
    this.#sender.close();
    this.#receiver.close();
  }
}

/** Octets that no protocol sends, but with `beginning` in front: hexadecimal. The same in each run. */
export function junk(count: number, octets: number, beginning = ''): Uint8Array[] {
  const begins = Buffer.from(beginning, 'hex');
  return Array.from({ length: count }, (_, index) => {
    const payload = Uint8Array.from(
      { length: octets },
      (__, at) => (at * 151 + index * 89 + ((at * index) >> 3) + 7) & 0xff,
    );
    payload.set(begins.subarray(0, octets));
    return payload;
  });
}
