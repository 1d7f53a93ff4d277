/**
 * Keeps a zone by the embedded DNS server: the records are in the database already, and applied is what a new serial
 * has been given for and this replica serves. The other replicas follow the same log entry.
 */
import type pg from 'pg';
import type { EmbeddedZones } from './embedded-zones.ts';
import { away, type ZoneServer } from './port.ts';
import { giveSerial } from './record-store.ts';

export interface EmbeddedOptions {
  readonly pool: pg.Pool;
  readonly uuid: string;
  readonly zones: EmbeddedZones;
  readonly committed: () => void;
}

const publishedMilliseconds = 5_000;
/** The server starts last of all. */
const servedMilliseconds = 2_000;
const notServed = () => away('the embedded DNS server does not run here');

export function createEmbedded({ pool, uuid, zones, committed }: EmbeddedOptions): ZoneServer {
  const closing = new AbortController();
  const isServed = () => zones.served(servedMilliseconds, closing.signal);
  return {
    async apply() {
      if (!(await isServed())) return notServed();
      const position = await giveSerial(pool, uuid);
      if (position === undefined) return away('the zone is gone');
      committed();
      const published = await zones.published(uuid, position, publishedMilliseconds, closing.signal);
      return published
        ? { ok: true, refused: new Map(), untried: new Set() }
        : away('the embedded DNS server does not follow the change log');
    },
    async readBack(owners) {
      if (!(await isServed())) return notServed();
      const targets = new Map<string, readonly string[]>();
      for (const owner of owners) {
        const target = zones.target(uuid, owner);
        targets.set(owner, target === undefined ? [] : [target]);
      }
      return { ok: true, targets };
    },
    async probe() {
      return (await isServed()) ? { ok: true } : notServed();
    },
    close: () => closing.abort(),
  };
}
