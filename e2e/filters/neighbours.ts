/** Payloads beside a given one: an octet changed, cut off, grown. Must never know what they mean. */
import type { Random } from '@levee/lab/random.ts';

/** No two alike, none the payload itself. */
export function neighboursOf(payload: Uint8Array, random: Random, count: number): Uint8Array[] {
  const found = new Map<string, Uint8Array>();
  // An empty payload has few neighbours.
  for (let tries = 0; found.size < count && tries < 4 * count; tries++) {
    const neighbour = oneNeighbour(payload, random);
    if (!Buffer.from(neighbour).equals(payload)) found.set(Buffer.from(neighbour).toString('latin1'), neighbour);
  }
  return [...found.values()];
}

/** Every bit of the first so many octets turned, one at a time. */
export function bitsTurned(payload: Uint8Array, octets: number): Uint8Array[] {
  return Array.from(payload.subarray(0, octets)).flatMap((octet, at) =>
    Array.from({ length: 8 }, (_, bit) => payload.with(at, octet ^ (1 << bit))),
  );
}

function oneNeighbour(payload: Uint8Array, random: Random): Uint8Array {
  const kind = payload.length === 0 ? 'grown' : random.pick(['changed', 'changed', 'turned', 'turned', 'cut', 'grown']);
  // Signatures stand at the beginning; what is far behind it is seldom looked at.
  const at = random.integer(0, Math.min(payload.length, random.pick([4, 16, 64, 65_535])) - 1);
  switch (kind) {
    case 'changed':
      return payload.with(at, random.integer(0, 255));
    case 'turned':
      return payload.with(at, (payload[at] as number) ^ (1 << random.integer(0, 7)));
    case 'cut':
      return payload.subarray(0, random.chance(0.3) ? payload.length - 1 : at);
    default: {
      const more = random.pick([1, 1, 2, 3, 4, 8, 16]);
      return Uint8Array.from([...payload, ...Array.from({ length: more }, () => random.integer(0, 255))]);
    }
  }
}
