/** Puts mutated queries to zones and holds every reply, and the memory, to what must be true of them. Test code only. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createServedZones, type ServedZones } from '../served-zones.ts';
import { zoneSettings } from './memory-zones.ts';
import { holdReply, mutatedQuery, numbersFrom, secondaryAddress } from './mutated-queries.ts';

function hostileZones(): ServedZones {
  const zones = createServedZones();
  const secondaries = [{ address: secondaryAddress, port: 53 }];
  const four = '113.0.203.in-addr.arpa';
  const nameservers = Array.from({ length: 30 }, (_, index) => `${'n'.repeat(50)}.ns${index}.example.net`);
  zones.replace(zoneSettings(four, { secondaries, nameservers }), [
    [`7.${four}`, 'mail.example.net'],
    [`8.${four}`, { alias: `1.0.0.8.b.d.0.1.0.0.2.ip6.arpa` }],
    [`${'y'.repeat(63)}.${four}`, { nameservers }],
  ]);
  zones.replace(zoneSettings('8.b.d.0.1.0.0.2.ip6.arpa'), [[`1.0.0.8.b.d.0.1.0.0.2.ip6.arpa`, 'six.example.net']]);
  return zones;
}

/** @returns how many replies there were of each kind */
export function hostileRun(seed: number, count: number): ReadonlyMap<string, number> {
  const zones = hostileZones();
  const below = numbersFrom(seed);
  const kinds = new Map<string, number>();
  const put = (times: number) => {
    for (let index = 0; index < times; index += 1) {
      const message = mutatedQuery(below);
      const asker = {
        transport: below(3) === 0 ? ('tcp' as const) : ('udp' as const),
        address: below(2) === 0 ? secondaryAddress : '192.0.2.1',
      };
      try {
        const kind = holdReply(zones, message, asker);
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      } catch (error) {
        throw new Error(`seed ${seed}, ${asker.transport}, ${asker.address}: ${message.toString('hex')}`, {
          cause: error,
        });
      }
    }
  };
  // Compiled code and caches come with the first ones.
  const warmUp = Math.floor(count / 3);
  put(warmUp);
  const before = usedBytes();
  put(count - warmUp);
  const grown = usedBytes() - before;
  assert.ok(grown < 2 * 1024 * 1024, `${count} queries left ${grown} bytes behind`);
  return kinds;
}

function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
