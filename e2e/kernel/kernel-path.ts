/**
 * A real router with a table loaded, and what became of every packet sent through it: forwarded to the customer,
 * answered to the sender, let past the ingress hook. Packets are told apart by IPv4 identification or IPv6 flow
 * label. Must never look at rules or guess: a socket that overran is an exception, not a result.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Namespace } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, type PacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress, RouterPath } from '@levee/lab/router-path.ts';
import { pinThread } from '@levee/lab/system-calls.ts';
import { protectedPrefixes, wireMtu } from './world.ts';

export type Key = string;
export type Answered = 'reset' | 'unreachable';

export interface Observed {
  /** How many frames of that packet arrived at the other side of the router. */
  readonly forwarded: ReadonlyMap<Key, number>;
  readonly answered: ReadonlyMap<Key, readonly Answered[]>;
  /** Sequence numbers of the SYN-ACKs with which the router itself answered a SYN. */
  readonly challenged: ReadonlyMap<Key, number>;
  /** Frames not addressed to the router's hardware that passed its ingress hook. */
  readonly passedIngress: ReadonlyMap<Key, number>;
}

export function packetKey(family: 4 | 6, id: number): Key {
  return `${family}:${id}`;
}

const routerOutside4 = 0xc0000201n;
const attacker4 = 0xc0000202n;
const sentinelId = 0xffff;
/** Below the kernel's per-processor backlog (1000 packets), each packet counted up to three times on its way. */
const framesAtOnce = 240;

/** After every chain of the table at that hook; moves what passed, unchanged, to a wire of its own. */
const ingressTap = `
add table netdev lab_tap
add chain netdev lab_tap passed { type filter hook ingress device "${device.routerOutside}" priority 10000; policy accept; }
add rule netdev lab_tap passed meta pkttype != host fwd to "tap"
`;

export class KernelPath {
  readonly path: RouterPath;
  private readonly fromAttacker: PacketSocket;
  private readonly fromCustomer: PacketSocket;
  private readonly atAttacker: PacketSocket;
  private readonly atCustomer: PacketSocket;
  private readonly atTap: PacketSocket;
  private readonly sentinel: PreparedFrames;

  constructor(label: string) {
    // One processor: its backlog is a queue, so a packet sent later never overtakes one sent before.
    pinThread(0);
    this.path = new RouterPath({ protectedPrefixes, mtu: wireMtu, label });
    const { attacker, router, customer } = this.path;
    try {
      router.ip([
        `link add tap mtu ${wireMtu} type veth peer name tap mtu ${wireMtu} netns ${customer.name}`,
        'link set tap up',
      ]);
      customer.ip(['link set tap up']);
      router.loadNft(ingressTap);
      const listen = (namespace: Namespace, name: string): PacketSocket =>
        openPacketSocket(namespace, { device: name, receiveBytes: 160 });
      this.fromAttacker = openPacketSocket(attacker, { device: device.attacker });
      this.fromCustomer = openPacketSocket(customer, { device: device.customer });
      this.atAttacker = listen(attacker, device.attacker);
      this.atCustomer = listen(customer, device.customer);
      this.atTap = listen(customer, 'tap');
    } catch (error) {
      this.path.remove();
      throw error;
    }
    this.sentinel = new PreparedFrames([
      buildFrame({
        family: 4,
        source: attacker4,
        destination: routerOutside4,
        sourceHardware: hardwareAddress.attacker,
        destinationHardware: hardwareAddress.routerOutside,
        id: sentinelId,
        transport: { kind: 'icmp', type: 8, code: 0 },
      }),
    ]);
  }

  load(text: string): void {
    if (text !== '') this.path.router.loadNft(text);
  }

  listRuleset(): string {
    return this.path.router.run('nft', ['-s', 'list', 'table', 'inet', 'levee']);
  }

  /** Sends all and comes back when the router is done with the last. Frames go out in the order given. */
  async send(frames: readonly Uint8Array[], from: 'attacker' | 'customer' = 'attacker'): Promise<Observed> {
    const seen = new Observation();
    const sender = from === 'attacker' ? this.fromAttacker : this.fromCustomer;
    const prepared = new PreparedFrames(frames);
    for (let start = 0; start < frames.length; start += framesAtOnce) {
      const count = Math.min(framesAtOnce, frames.length - start);
      if (sender.send(prepared, start, count) !== count) throw new Error('the device did not take all frames');
      await this.settle(seen, from);
    }
    for (const socket of [this.atAttacker, this.atCustomer, this.atTap]) {
      if (socket.droppedFrames() > 0) throw new Error('a listening socket overran: nothing can be said of this run');
    }
    return seen;
  }

  remove(): void {
    for (const socket of [this.fromAttacker, this.fromCustomer, this.atAttacker, this.atCustomer, this.atTap]) {
      socket.close();
    }
    this.path.remove();
  }

  /** Waits for the router's echo to a request sent last. */
  private async settle(seen: Observation, from: 'attacker' | 'customer'): Promise<void> {
    this.fromAttacker.send(this.sentinel);
    const deadline = performance.now() + 10_000;
    let answered = false;
    for (;;) {
      this.atAttacker.receive((frame) => {
        if (isSentinelAnswer(frame)) answered = true;
        else if (from === 'attacker') seen.takeAnswer(frame);
        else seen.takeForwarded(frame);
      });
      this.atCustomer.receive((frame) => {
        if (from === 'attacker') seen.takeForwarded(frame);
        else seen.takeAnswer(frame);
      });
      this.atTap.receive((frame) => seen.takeAtTap(frame));
      if (answered) return;
      if (performance.now() > deadline) throw new Error('the router no longer answers an echo request');
      await turn();
    }
  }
}

/** Gathers frames into what they say. */
export class Observation implements Observed {
  readonly forwarded = new Map<Key, number>();
  readonly answered = new Map<Key, Answered[]>();
  readonly challenged = new Map<Key, number>();
  readonly passedIngress = new Map<Key, number>();

  takeForwarded(frame: Uint8Array): void {
    count(this.forwarded, keyOf(frame, 14));
  }

  takeAtTap(frame: Uint8Array): void {
    count(this.passedIngress, keyOf(frame, 14));
  }

  /** What comes back on the wire that the packets were sent on: the router's answers, and nothing else is looked at. */
  takeAnswer(frame: Uint8Array): void {
    const v6 = isV6(frame);
    const protocol = frame[v6 ? 20 : 23] as number;
    const inner = v6 ? 54 : 34;
    if (protocol === (v6 ? 58 : 1)) {
      const code = v6 ? [1, 4] : [3, 3]; // port unreachable: RFC 4443 3.1, RFC 792
      if (frame[inner] === code[0] && frame[inner + 1] === code[1]) this.answer(keyOf(frame, inner + 8), 'unreachable');
      return;
    }
    if (protocol !== 6) return;
    const flags = frame[inner + 13] as number;
    const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
    if ((flags & 0x12) === 0x12) {
      this.challenged.set(packetKey(v6 ? 6 : 4, view.getUint32(inner + 8) >>> 14), view.getUint32(inner + 4));
      return;
    }
    if ((flags & 0x04) === 0) return;
    const acknowledges = (flags & 0x10) !== 0;
    this.answer(packetKey(v6 ? 6 : 4, view.getUint32(inner + (acknowledges ? 8 : 4)) >>> 14), 'reset');
  }

  private answer(key: Key | undefined, answer: Answered): void {
    if (key === undefined) return;
    const answers = this.answered.get(key);
    if (answers) answers.push(answer);
    else this.answered.set(key, [answer]);
  }
}

function isV6(frame: Uint8Array): boolean {
  return frame[12] === 0x86 && frame[13] === 0xdd;
}

/** Of the IP header at that offset; undefined where there is none of a packet of ours. */
function keyOf(frame: Uint8Array, at: number): Key | undefined {
  const version = (frame[at] as number) >> 4;
  if (version === 4) return packetKey(4, ((frame[at + 4] as number) << 8) | (frame[at + 5] as number));
  if (version !== 6) return undefined;
  const label =
    (((frame[at + 1] as number) & 0x0f) << 16) | ((frame[at + 2] as number) << 8) | (frame[at + 3] as number);
  return packetKey(6, label);
}

function count(counts: Map<Key, number>, key: Key | undefined): void {
  if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
}

function isSentinelAnswer(frame: Uint8Array): boolean {
  const fromRouter = !isV6(frame) && frame[26] === 0xc0 && frame[27] === 0 && frame[28] === 2 && frame[29] === 1;
  return fromRouter && frame[23] === 1 && frame[34] === 0 && frame[38] === 0xff && frame[39] === 0xff;
}
