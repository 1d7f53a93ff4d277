/**
 * What a router's filters remember, as a model: who opened something, levels of meters and limits, how long each
 * filter is in force. Time comes from outside, in nanoseconds, and never runs backwards. Owns the memory; what is asked of
 * it and when is apply-filter.ts's. Must never ask a kernel or read how a kind is compiled.
 */
import type { Packet } from '../firewall/packet.ts';
import { fullBucket, type TokenBucket, takePacket } from '../firewall/token-bucket.ts';
import type { FilterFacts } from './apply-filter.ts';
import type { Filter } from './filter.ts';
import { type KindMeter, settlingSeconds } from './filter-kind.ts';

const second = 1_000_000_000n;
const bytesPerMegabit = 125_000;

export interface FilterMemory extends FilterFacts {
  /** All that is asked from now on is asked at that time. */
  moveTo(atNanoseconds: bigint): void;
  /** The filter comes into force now, and settles. One never begun has settled long ago. */
  begin(filter: Filter): void;
  /** The filter is gone, and what it remembered with it. */
  forget(uuid: string): void;
}

interface Remembered {
  beganAt: bigint | undefined;
  /** By what is remembered, the time until which it is. In the order of those times. */
  readonly known: Map<string, bigint>;
  readonly buckets: Map<string, TokenBucket>;
}

export function createFilterMemory(): FilterMemory {
  const filters = new Map<string, Remembered>();
  let now = 0n;

  function of({ uuid }: Filter): Remembered {
    const found = filters.get(uuid);
    if (found) return found;
    const made: Remembered = { beganAt: undefined, known: new Map(), buckets: new Map() };
    filters.set(uuid, made);
    return made;
  }

  function take(filter: Filter, key: string, full: () => TokenBucket, tokens: number): boolean {
    const { buckets } = of(filter);
    const { within, bucket } = takePacket(buckets.get(key) ?? full(), now, tokens);
    buckets.set(key, bucket);
    return within;
  }

  return {
    moveTo(atNanoseconds) {
      if (atNanoseconds < now) throw new RangeError(`time runs from ${now} back to ${atNanoseconds}`);
      now = atNanoseconds;
    },
    begin(filter) {
      of(filter).beganAt = now;
    },
    forget(uuid) {
      filters.delete(uuid);
    },
    settling(filter) {
      const { beganAt } = of(filter);
      const settles = filter.kind.enforcement?.settles === true;
      return settles && beganAt !== undefined && now < beganAt + BigInt(settlingSeconds) * second;
    },
    knows(filter, packet) {
      return (of(filter).known.get(memoryKey(filter, packet)) ?? 0n) > now;
    },
    withinMeter(filter, meter, packet) {
      const full = () => fullBucket(meter.packetsPerSecond, now, meter.burst);
      return take(filter, `${meter.name} ${keyOf(meter, packet)}`, full, 1);
    },
    remember(filter, packet) {
      const { seconds, most } = boundsOf(filter);
      const { known } = of(filter);
      const key = memoryKey(filter, packet);
      // Moves to the end: the first ones are those that are forgotten next.
      const isNew = !known.delete(key);
      for (const [each, until] of known) {
        if (until > now) break;
        known.delete(each);
      }
      if (!isNew || known.size < most) known.set(key, now + BigInt(seconds) * second);
    },
    withinRate(filter, packet) {
      const bytes = (filter.rateLimitMegabitsPerSecond ?? 0) * bytesPerMegabit;
      // One second's worth at once: decision 0024.
      return take(filter, 'rate', () => fullBucket(bytes, now, bytes), packet.totalLengthBytes ?? 0);
    },
  };
}

function boundsOf({ kind }: Filter): { readonly seconds: number; readonly most: number } {
  const remembers = kind.enforcement?.remembers;
  if (remembers === undefined) throw new Error(`${kind.name} remembers nothing`);
  return { seconds: remembers.seconds, most: 'flows' in remembers ? remembers.flows : remembers.sources };
}

/** What is remembered: a source at a destination, or a flow between them. */
function memoryKey({ kind }: Filter, packet: Packet): string {
  const remembers = kind.enforcement?.remembers;
  const ofFlows = remembers !== undefined && 'flows' in remembers;
  return ofFlows ? `${peersOf(packet)} ${packet.sourcePort} ${packet.destinationPort}` : peersOf(packet);
}

function keyOf(meter: KindMeter, packet: Packet): string {
  return meter.of === 'source' ? peersOf(packet) : `${packet.family} ${packet.destination}`;
}

function peersOf(packet: Packet): string {
  return `${packet.family} ${packet.source} ${packet.destination}`;
}
