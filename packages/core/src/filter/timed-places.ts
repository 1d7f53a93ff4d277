/**
 * Owns a bounded number of places that are free again some time after they were last taken: a model of the kernel's sets that
 * packets write to. Time is told with each question, in nanoseconds, and never runs backwards.
 */
export interface TimedPlaces<Value> {
  /** Undefined: nothing is kept there, or its time is over. */
  at(key: string, now: bigint): Value | undefined;
  /** From now on for its whole time. False: there is no place for it. */
  keep(key: string, value: Value, now: bigint): boolean;
}

export function createTimedPlaces<Value>(most: number, nanoseconds: bigint): TimedPlaces<Value> {
  /** In the order of the times until which they are kept. */
  const places = new Map<string, { readonly value: Value; readonly until: bigint }>();
  return {
    at(key, now) {
      const found = places.get(key);
      return found !== undefined && found.until > now ? found.value : undefined;
    },
    keep(key, value, now) {
      // Moves to the end.
      const isNew = !places.delete(key);
      for (const [each, { until }] of places) {
        if (until > now) break;
        places.delete(each);
      }
      if (isNew && places.size >= most) return false;
      places.set(key, { value, until: now + nanoseconds });
      return true;
    },
  };
}
