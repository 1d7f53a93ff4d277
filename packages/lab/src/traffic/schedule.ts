/**
 * Packets with the moments at which they go, and what they are: the truth that whatever watches them is held to. Owns
 * their order and their sums. Must never build or send a packet.
 */

/** What traffic is, and to whom; sums grow as packets are added. */
export interface TrafficStream {
  /** A vector's name for an attack; else what it is: `background`, `crowd`. */
  readonly name: string;
  readonly attack: boolean;
  /** An address, or the subnet over which it is spread. */
  readonly dst: string;
  /** Milliseconds since the first moment of the traffic; of the first packet and the last. */
  startMs: number;
  endMs: number;
  packets: number;
  /** IP total lengths. */
  bytes: number;
  /** Of the squares of those lengths: what the error of a sample's bytes is made of. */
  squares: number;
}

export interface TimedFrame {
  readonly atMs: number;
  readonly frame: Uint8Array;
}

export interface ScheduledFrame extends TimedFrame {
  /** Undefined: nobody's traffic. */
  readonly stream: TrafficStream | undefined;
}

const ethernetBytes = 14;

export class Schedule {
  readonly streams: TrafficStream[] = [];
  readonly #times: number[] = [];
  readonly #frames: Uint8Array[] = [];
  readonly #of: (TrafficStream | undefined)[] = [];

  stream(name: string, dst: string, attack: boolean): TrafficStream {
    const made: TrafficStream = {
      name,
      dst,
      attack,
      startMs: Number.POSITIVE_INFINITY,
      endMs: Number.NEGATIVE_INFINITY,
      packets: 0,
      bytes: 0,
      squares: 0,
    };
    this.streams.push(made);
    return made;
  }

  /** An Ethernet frame with one IP packet. The same frame may be added at many moments: it is not copied. */
  add(stream: TrafficStream, atMs: number, frame: Uint8Array): void {
    this.#add(atMs, frame, stream);
    stream.startMs = Math.min(stream.startMs, atMs);
    stream.endMs = Math.max(stream.endMs, atMs);
    stream.packets++;
    const length = frame.length - ethernetBytes;
    stream.bytes += length;
    stream.squares += length * length;
  }

  /** A frame that is nobody's traffic. */
  addUncounted(atMs: number, frame: Uint8Array): void {
    this.#add(atMs, frame, undefined);
  }

  #add(atMs: number, frame: Uint8Array, stream: TrafficStream | undefined): void {
    this.#times.push(atMs);
    this.#frames.push(frame);
    this.#of.push(stream);
  }

  get count(): number {
    return this.#times.length;
  }

  /** By time; what goes at the same moment in the order in which it was added. */
  *inOrder(): Generator<ScheduledFrame> {
    const times = Float64Array.from(this.#times);
    const order = Uint32Array.from(times, (_, index) => index);
    order.sort((a, b) => (times[a] as number) - (times[b] as number) || a - b);
    for (const index of order) {
      yield { atMs: times[index] as number, frame: this.#frames[index] as Uint8Array, stream: this.#of[index] };
    }
  }
}
