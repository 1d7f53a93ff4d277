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
import { mostApart, placeSeconds, sharedBound } from './meter-bounds.ts';
import { sourceAt } from './one-source.ts';
import { createTimedPlaces, type TimedPlaces } from './timed-places.ts';

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
  readonly known: TimedPlaces<true>;
  readonly meters: Map<string, Metered>;
  rate: TokenBucket | undefined;
}

interface Metered {
  readonly apart: TimedPlaces<TokenBucket>;
  /** Of those that have no place. */
  shared: TokenBucket;
}

export function createFilterMemory(): FilterMemory {
  const filters = new Map<string, Remembered>();
  let now = 0n;

  function of(filter: Filter): Remembered {
    const found = filters.get(filter.uuid);
    if (found) return found;
    const made: Remembered = { beganAt: undefined, known: placesOf(filter), meters: new Map(), rate: undefined };
    filters.set(filter.uuid, made);
    return made;
  }

  function meterOf(filter: Filter, meter: KindMeter): Metered {
    const { meters } = of(filter);
    const found = meters.get(meter.name);
    if (found) return found;
    const { packetsPerSecond, burst } = sharedBound(meter);
    const made: Metered = {
      apart: createTimedPlaces(mostApart(meter), BigInt(placeSeconds(meter)) * second),
      shared: fullBucket(packetsPerSecond, now, burst),
    };
    meters.set(meter.name, made);
    return made;
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
      const { settles } = filter.kind.enforcement;
      return settles && beganAt !== undefined && now < beganAt + BigInt(settlingSeconds) * second;
    },
    knows(filter, packet) {
      return of(filter).known.at(memoryKey(filter, packet), now) === true;
    },
    withinMeter(filter, meter, packet) {
      const metered = meterOf(filter, meter);
      const key = keyOf(meter, packet);
      const bucket = metered.apart.at(key, now) ?? fullBucket(meter.packetsPerSecond, now, meter.burst);
      const own = takePacket(bucket, now);
      if (metered.apart.keep(key, own.bucket, now)) return own.within;
      const shared = takePacket(metered.shared, now);
      metered.shared = shared.bucket;
      return shared.within;
    },
    remember(filter, packet) {
      of(filter).known.keep(memoryKey(filter, packet), true, now);
    },
    withinRate(filter, packet) {
      const remembered = of(filter);
      const bytes = (filter.rateLimitMegabitsPerSecond ?? 0) * bytesPerMegabit;
      // One second's worth at once: decision 0024.
      const full = remembered.rate ?? fullBucket(bytes, now, bytes);
      const { within, bucket } = takePacket(full, now, packet.totalLengthBytes ?? 0);
      remembered.rate = bucket;
      return within;
    },
  };
}

/** Of a kind that remembers nothing: no place. */
function placesOf({ kind }: Filter): TimedPlaces<true> {
  const { remembers } = kind.enforcement;
  if (remembers === undefined) return createTimedPlaces(0, 0n);
  const most = 'flows' in remembers ? remembers.flows : remembers.sources;
  return createTimedPlaces(most, BigInt(remembers.seconds) * second);
}

/** What is remembered: a source at a destination, or a flow between them. */
function memoryKey({ kind }: Filter, packet: Packet): string {
  const { remembers } = kind.enforcement;
  return remembers !== undefined && 'flows' in remembers ? flowOf(packet) : sourceAt(packet);
}

function keyOf(meter: KindMeter, packet: Packet): string {
  return meter.of === 'source' ? sourceAt(packet) : `${packet.family} ${packet.destination}`;
}

function flowOf({ family, source, destination, sourcePort, destinationPort }: Packet): string {
  return `${family} ${source} ${destination} ${sourcePort} ${destinationPort}`;
}
