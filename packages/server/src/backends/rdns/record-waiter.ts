/**
 * Waits for what becomes of a record's change, for `Prefer: wait`. Looks at the database when the change log has something
 * about the record or a zone; asks nothing in between.
 */
import { parseAddress } from '@levee/core/net/address.ts';
import { reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import type pg from 'pg';
import { loadPresent, loadStoredZones } from './record-store.ts';

/** As on routers (agents/applied-view.ts); `not-enforced`: no zone covers the address. */
export type RecordOutcome = 'applied' | 'failed' | 'timeout' | 'not-enforced';

export interface RecordWaiter {
  settled(uuid: string, changePosition: number, milliseconds: number): Promise<RecordOutcome>;
  /** The log told of these records; undefined: of zones, or of anything. */
  look(uuids?: ReadonlySet<string>): void;
  stop(): void;
}

interface Waiting {
  readonly uuid: string;
  readonly look: () => void;
  readonly end: (outcome: RecordOutcome) => void;
}

export function createRecordWaiter(pool: pg.Pool): RecordWaiter {
  const waiting = new Set<Waiting>();
  let stopped = false;
  return {
    settled(uuid, changePosition, milliseconds) {
      if (stopped || milliseconds <= 0) return Promise.resolve('timeout');
      return new Promise((resolve) => {
        let looking = false;
        let again = false;
        const each: Waiting = {
          uuid,
          end(outcome) {
            clearTimeout(timer);
            waiting.delete(each);
            resolve(outcome);
          },
          look() {
            again = looking;
            if (looking) return;
            looking = true;
            outcomeOf(pool, uuid, changePosition)
              .then((outcome) => outcome !== undefined && each.end(outcome))
              // The database is away: the next look, or the end of the time.
              .catch(() => {})
              .finally(() => {
                looking = false;
                if (again && waiting.has(each)) each.look();
              });
          },
        };
        const timer = setTimeout(() => each.end('timeout'), milliseconds);
        waiting.add(each);
        each.look();
      });
    },
    look(uuids) {
      for (const each of [...waiting]) if (uuids === undefined || uuids.has(each.uuid)) each.look();
    },
    stop() {
      stopped = true;
      for (const each of [...waiting]) each.end('timeout');
    },
  };
}

async function outcomeOf(pool: pg.Pool, uuid: string, changePosition: number): Promise<RecordOutcome | undefined> {
  const [record] = await loadPresent(pool, [uuid]);
  if (record === undefined || (record.appliedPosition ?? 0) >= changePosition) return 'applied';
  if (record.failure !== null) return 'failed';
  const read = parseAddress(record.address);
  const zones = new ZoneIndex(
    (await loadStoredZones(pool)).map((stored) => ({ ...reverseZoneFromTrusted(stored.zone), stored })),
  );
  const zone = read.ok ? zones.match(read.address)?.stored : undefined;
  if (zone === undefined) return record.deleted ? undefined : 'not-enforced';
  return zone.trouble === 'refused' ? 'failed' : undefined;
}
