/**
 * Owns seeing, by packets, when a rule takes hold: for each change under way one datagram a millisecond that the new
 * rule forbids, stamped with its number and the time it was sent. The first that is lost while its successors are lost
 * too tells the moment, to a millisecond and on the late side.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress, type RouterPath } from '@levee/lab/router-path.ts';
import { numberOf } from '../../e2e/packet-probe.ts';

const udpPayload = 14 + 20 + 8;
/** So many datagrams lost in a row, the last of them long enough ago to have arrived: the rule holds. */
const lostInARow = 20;

interface Watched {
  readonly frame: Uint8Array;
  readonly sentAt: number[];
  lastArrived: number;
  answeredAt: number | undefined;
}

export class EnforcementProbe {
  readonly #sender: PacketSocket;
  readonly #receiver: PacketSocket;
  readonly #underWay = new Map<number, Watched>();
  readonly #done: { answeredAt: number; enforcedAt: number }[] = [];

  constructor(path: RouterPath) {
    this.#sender = openPacketSocket(path.attacker, { device: device.attacker });
    const only = [{ offset: 12, value: 0x0800 }];
    this.#receiver = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 128, only });
  }

  /** Starts sending what change `number` is to forbid. */
  watch(number: number, destination: string, port: number): void {
    const payload = new Uint8Array(8);
    new DataView(payload.buffer).setUint32(0, number);
    const frame = buildFrame({
      family: 4,
      source: BigInt(numberOf('203.0.113.200')),
      destination: BigInt(numberOf(destination)),
      sourceHardware: hardwareAddress.attacker,
      destinationHardware: hardwareAddress.routerOutside,
      id: number & 0xffff,
      transport: { kind: 'udp', sourcePort: 40_000, destinationPort: port },
      payload,
      totalLength: 64,
    });
    // A wrong UDP checksum would be the receiver's matter, and no socket receives this: 0 says that there is none.
    frame.fill(0, udpPayload - 2, udpPayload);
    const watched = { frame, sentAt: [], lastArrived: -1, answeredAt: undefined };
    this.#underWay.set(number, watched);
    this.#send([watched]);
  }

  answered(number: number, at: number): void {
    const watched = this.#underWay.get(number);
    if (watched !== undefined) watched.answeredAt = at;
  }

  /** Sends and receives, about once a millisecond, until that moment of `performance.now()`. */
  async runUntil(moment: number): Promise<void> {
    while (performance.now() < moment) {
      await delay(1);
      this.#receive();
      this.#send(this.#underWay.values());
    }
  }

  /** Milliseconds from answer to enforcement, of every change that was seen enforced. */
  results(): number[] {
    return this.#done.map(({ answeredAt, enforcedAt }) => enforcedAt - answeredAt);
  }

  #send(all: Iterable<Watched>): void {
    const frames: Uint8Array[] = [];
    const now = performance.now();
    for (const watched of all) {
      new DataView(watched.frame.buffer, watched.frame.byteOffset).setUint32(udpPayload + 4, watched.sentAt.length);
      watched.sentAt.push(now);
      frames.push(watched.frame);
    }
    if (frames.length === 0) return;
    if (this.#sender.send(new PreparedFrames(frames)) !== frames.length) throw new Error('the sender was held up');
  }

  #receive(): void {
    this.#receiver.receive((frame) => {
      const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
      const watched = this.#underWay.get(view.getUint32(udpPayload));
      if (watched !== undefined) watched.lastArrived = Math.max(watched.lastArrived, view.getUint32(udpPayload + 4));
    });
    for (const [number, { sentAt, lastArrived, answeredAt }] of this.#underWay) {
      if (answeredAt === undefined || sentAt.length - 1 - lastArrived < lostInARow) continue;
      this.#underWay.delete(number);
      // Nothing ever came through: then it was not this rule that stopped it.
      if (lastArrived >= 0) this.#done.push({ answeredAt, enforcedAt: sentAt[lastArrived + 1] ?? Number.NaN });
    }
  }

  [Symbol.dispose](): void {
    if (this.#receiver.droppedFrames() > 0) throw new Error('the receiver lost frames: the figures are worth nothing');
    this.#sender.close();
    this.#receiver.close();
  }
}
