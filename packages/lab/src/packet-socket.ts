/**
 * Raw link-layer sockets (packet(7)): whole Ethernet frames out of and into a device, many a system call.
 * Owns the message buffers. Must never parse a packet.
 */

import type { Namespace } from './namespace.ts';
import { addressOf, checked, lastErrorCode, SystemCallError, system } from './system-calls.ts';

const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const SO_SNDBUFFORCE = 32;
const SO_ATTACH_FILTER = 26;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;
const PACKET_QDISC_BYPASS = 20;
const PACKET_IGNORE_OUTGOING = 23;
const ETH_P_ALL = 3;
const MSG_DONTWAIT = 0x40;

// struct mmsghdr on 64-bit Linux (x86-64, arm64): msghdr 56 bytes, msg_len 4, padding 4. struct iovec: 16.
const messageBytes = 64;
const vectorBytes = 16;
const offsetVector = 16;
const offsetVectorCount = 24;
const offsetReceivedBytes = 56;

/** Frames laid out for sendmmsg(2): built once, sent as often as wanted, without a copy in JavaScript. */
export class PreparedFrames {
  readonly count: number;
  private readonly messages: Uint8Array;
  private readonly address: bigint;
  private readonly keptAlive: readonly Uint8Array[];

  constructor(frames: readonly Uint8Array[]) {
    this.count = frames.length;
    const total = frames.reduce((sum, frame) => sum + frame.length, 0);
    const bytes = new Uint8Array(new ArrayBuffer(Math.max(1, total)));
    const vectors = new Uint8Array(new ArrayBuffer(Math.max(1, frames.length) * vectorBytes));
    this.messages = new Uint8Array(new ArrayBuffer(Math.max(1, frames.length) * messageBytes));
    this.keptAlive = [bytes, vectors];
    this.address = addressOf(this.messages);
    const bytesAddress = addressOf(bytes);
    const vectorsAddress = addressOf(vectors);
    const vectorView = new DataView(vectors.buffer);
    const messageView = new DataView(this.messages.buffer);
    let offset = 0;
    frames.forEach((frame, index) => {
      bytes.set(frame, offset);
      vectorView.setBigUint64(index * vectorBytes, bytesAddress + BigInt(offset), true);
      vectorView.setBigUint64(index * vectorBytes + 8, BigInt(frame.length), true);
      messageView.setBigUint64(index * messageBytes + offsetVector, vectorsAddress + BigInt(index * vectorBytes), true);
      messageView.setBigUint64(index * messageBytes + offsetVectorCount, 1n, true);
      offset += frame.length;
    });
  }

  messageAddress(index: number): bigint {
    if (this.keptAlive.length === 0) throw new Error('frames were released');
    return this.address + BigInt(index * messageBytes);
  }
}

export interface PacketSocketOptions {
  device: string;
  /** Frames longer than this are cut when received. 0: the socket only sends. */
  receiveBytes?: number;
  /** Room in the kernel for what arrives between two calls of `receive`. */
  bufferBytes?: number;
  /** Only frames with these 16-bit values (network order) at these offsets; the kernel leaves the rest aside. */
  only?: readonly { readonly offset: number; readonly value: number }[];
}

const receiveBatch = 256;

export class PacketSocket {
  private readonly fd: number;
  private readonly slotBytes: number;
  private readonly slots: Uint8Array;
  private readonly vectors: Uint8Array;
  private readonly messages: Uint8Array;
  private readonly messageView: DataView;
  private readonly messagesAddress: bigint;
  private droppedBefore = 0;
  private open = true;

  /** Opens on the calling thread's namespace; see `openPacketSocket` to name one. */
  constructor(options: PacketSocketOptions) {
    const index = system.if_nametoindex(options.device);
    if (index === 0) throw new SystemCallError(`if_nametoindex ${options.device}`);
    this.slotBytes = options.receiveBytes ?? 0;
    const receives = this.slotBytes > 0;
    this.fd = checked('socket', system.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    try {
      if (receives) {
        this.setOption(SOL_SOCKET, SO_RCVBUFFORCE, options.bufferBytes ?? 1 << 26);
        this.setOption(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
      } else {
        this.setOption(SOL_SOCKET, SO_SNDBUFFORCE, options.bufferBytes ?? 1 << 24);
      }
      this.setOption(SOL_PACKET, PACKET_QDISC_BYPASS, 1);
      if (options.only) this.attachFilter(options.only); // before bind: nothing unwanted gets in
      const address = new Uint8Array(20); // struct sockaddr_ll
      const view = new DataView(address.buffer);
      view.setUint16(0, AF_PACKET, true);
      view.setUint16(2, receives ? ETH_P_ALL : 0, false);
      view.setInt32(4, index, true);
      checked('bind', system.bind(this.fd, address, address.length));
    } catch (error) {
      system.close(this.fd);
      throw error;
    }

    const count = receives ? receiveBatch : 0;
    this.slots = new Uint8Array(new ArrayBuffer(Math.max(1, count * this.slotBytes)));
    this.vectors = new Uint8Array(new ArrayBuffer(Math.max(1, count * vectorBytes)));
    this.messages = new Uint8Array(new ArrayBuffer(Math.max(1, count * messageBytes)));
    this.messageView = new DataView(this.messages.buffer);
    this.messagesAddress = addressOf(this.messages);
    const slotsAddress = addressOf(this.slots);
    const vectorsAddress = addressOf(this.vectors);
    const vectorView = new DataView(this.vectors.buffer);
    for (let i = 0; i < count; i++) {
      vectorView.setBigUint64(i * vectorBytes, slotsAddress + BigInt(i * this.slotBytes), true);
      vectorView.setBigUint64(i * vectorBytes + 8, BigInt(this.slotBytes), true);
      this.messageView.setBigUint64(i * messageBytes + offsetVector, vectorsAddress + BigInt(i * vectorBytes), true);
      this.messageView.setBigUint64(i * messageBytes + offsetVectorCount, 1n, true);
    }
  }

  /**
   * Sends frames [start, start + count) and answers how many the device took: fewer when its queue is full.
   */
  send(frames: PreparedFrames, start = 0, count = frames.count - start): number {
    let sent = 0;
    while (sent < count) {
      const result = system.sendmmsg(this.fd, frames.messageAddress(start + sent), Math.min(count - sent, 1024), 0);
      if (result < 0) {
        const code = lastErrorCode();
        if (code === 'EINTR') continue;
        if (code === 'EAGAIN' || code === 'ENOBUFS') return sent;
        throw new SystemCallError('sendmmsg', code);
      }
      sent += result;
    }
    return sent;
  }

  /**
   * Hands over everything that has arrived; answers how many frames. The bytes given are overwritten by the next
   * batch: copy what is to be kept.
   */
  receive(take: (frame: Uint8Array) => void): number {
    let total = 0;
    for (;;) {
      const result = system.recvmmsg(this.fd, this.messagesAddress, receiveBatch, MSG_DONTWAIT, null);
      if (result < 0) {
        const code = lastErrorCode();
        if (code === 'EINTR') continue;
        if (code === 'EAGAIN') return total;
        throw new SystemCallError('recvmmsg', code);
      }
      for (let i = 0; i < result; i++) {
        const length = this.messageView.getUint32(i * messageBytes + offsetReceivedBytes, true);
        take(this.slots.subarray(i * this.slotBytes, i * this.slotBytes + length));
      }
      total += result;
      if (result < receiveBatch) return total;
    }
  }

  /** Frames that found this socket's buffer full, since it was opened. Above 0, what was received is no evidence. */
  droppedFrames(): number {
    const statistics = new Uint8Array(8); // struct tpacket_stats: reading it zeroes it
    const length = new Uint8Array([8, 0, 0, 0]);
    checked('getsockopt', system.getsockopt(this.fd, SOL_PACKET, PACKET_STATISTICS, statistics, length));
    this.droppedBefore += new DataView(statistics.buffer).getUint32(4, true);
    return this.droppedBefore;
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    system.close(this.fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Classic BPF (`linux/filter.h`): load a half-word, give up unless equal, …, accept. */
  private attachFilter(conditions: readonly { readonly offset: number; readonly value: number }[]): void {
    const instructions: [code: number, whenTrue: number, whenFalse: number, operand: number][] = [];
    conditions.forEach(({ offset, value }, index) => {
      instructions.push([0x28, 0, 0, offset]); // ldh [offset]
      instructions.push([0x15, 0, (conditions.length - 1 - index) * 2 + 1, value]); // jeq, else to the refusal
    });
    instructions.push([0x06, 0, 0, 0x40000]); // ret: the whole frame
    instructions.push([0x06, 0, 0, 0]); // ret: nothing
    const program = new Uint8Array(new ArrayBuffer(instructions.length * 8));
    const view = new DataView(program.buffer);
    instructions.forEach(([code, whenTrue, whenFalse, operand], index) => {
      view.setUint16(index * 8, code, true);
      view.setUint8(index * 8 + 2, whenTrue);
      view.setUint8(index * 8 + 3, whenFalse);
      view.setUint32(index * 8 + 4, operand, true);
    });
    const description = new Uint8Array(16); // struct sock_fprog
    const descriptionView = new DataView(description.buffer);
    descriptionView.setUint16(0, instructions.length, true);
    descriptionView.setBigUint64(8, addressOf(program), true);
    checked('setsockopt filter', system.setsockopt(this.fd, SOL_SOCKET, SO_ATTACH_FILTER, description, 16));
  }

  private setOption(level: number, name: number, value: number): void {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setInt32(0, value, true);
    checked(`setsockopt ${level}/${name}`, system.setsockopt(this.fd, level, name, bytes, 4));
  }
}

export function openPacketSocket(namespace: Namespace, options: PacketSocketOptions): PacketSocket {
  return namespace.enter(() => new PacketSocket(options));
}
