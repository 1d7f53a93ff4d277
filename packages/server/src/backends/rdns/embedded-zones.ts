/**
 * The zones that the embedded DNS server of this replica serves, read from the database and kept up to date by the
 * change log. Content goes together with its serial: what changed is published when the log says that a new serial was
 * given, so that every replica serves the same under the same serial.
 *
 * A serial is of whole seconds since 1970, and one more than the last where that is not enough: it rises also when an
 * installation begins anew with the same zones, which positions in the log would not (RFC 1982).
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseAddress } from '@levee/core/net/address.ts';
import { type KeptZone, nameserversOf, nestedNames } from '@levee/core/rdns/nested-zones.ts';
import { ownerName, reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import { mailboxName, parseHostPort } from '@levee/core/rdns/zone-settings.ts';
import type pg from 'pg';
import type { RecordData, ZoneRecord, ZoneSettings, ZoneSink, ZoneSource } from '../dns/zone-source.ts';
import { loadAllLive, type PresentRecord, type StoredZone } from './record-store.ts';

export interface EmbeddedZones extends ZoneSource {
  /** Whether a server takes the zones, or does within the time: it starts after this. */
  served(milliseconds: number, signal: AbortSignal): Promise<boolean>;
  /** Reads everything anew, and publishes what differs. Throws what the driver throws. */
  reload(pool: pg.Pool): Promise<void>;
  /**
   * What the log told, in its order: records as they are now, records that are no more, and for each zone with an entry
   * the last entry's position, with all zones as they are now.
   */
  follow(
    pool: pg.Pool,
    records: readonly PresentRecord[],
    gone: readonly string[],
    zones?: { readonly positions: ReadonlyMap<string, number>; readonly stored: readonly StoredZone[] },
  ): Promise<void>;
  /** What stands at an owner of the zone. */
  target(zoneUuid: string, owner: string): string | undefined;
  /** Resolves true when the serial that was announced at this position is served. */
  published(zoneUuid: string, serialPosition: number, milliseconds: number, signal: AbortSignal): Promise<boolean>;
}

interface Entry {
  readonly data: RecordData;
  /** Of a PTR record: its row. */
  readonly uuid?: string;
}

interface Served {
  stored: StoredZone;
  readonly nameservers: readonly string[] | undefined;
  /** The last entry about it that was followed. */
  position: number;
  readonly content: Map<string, Entry>;
  /** Owners that are different from what was last published. */
  readonly changed: Set<string>;
}

type PlacedZone = KeptZone & { readonly uuid: string };

/** What there is, as of one reading of the database or followed from there. */
interface Standing {
  /** Which addresses go where, and what zones say of each other: when that changes, everything is read anew. */
  readonly shape: string;
  readonly index: ZoneIndex<PlacedZone>;
  readonly zones: ReadonlyMap<string, Served>;
  /** Record → where it stands. */
  readonly places: Map<string, { readonly zone: Served; readonly owner: string }>;
}

/** Secondaries are notified of changes: these are for when that fails. */
const refreshSeconds = 3_600;
const retrySeconds = 600;
const expireSeconds = 14 * 24 * 3_600;
/** A new record is not hidden for long by an answer that there was none. */
const minimumSeconds = 60;
/** Records taken in before queries get their turn. */
const recordsAtOnce = 2_000;

export function createEmbeddedZones(): EmbeddedZones {
  const sinks = new Set<ZoneSink>();
  const waiters = new Set<() => void>();
  let standing = layOut([]);

  function publish(zone: Served): void {
    const set: ZoneRecord[] = [];
    const removed: string[] = [];
    for (const owner of zone.changed) {
      const present = zone.content.get(owner);
      if (present === undefined) removed.push(owner);
      else set.push([owner, present.data]);
    }
    zone.changed.clear();
    for (const sink of sinks) sink.change(settingsOf(zone), set, removed);
  }

  function until(holds: () => boolean, milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (holds() || signal.aborted) return Promise.resolve(holds());
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        waiters.delete(look);
        signal.removeEventListener('abort', end);
        resolve(holds());
      };
      const look = () => {
        if (holds()) end();
      };
      const timer = setTimeout(end, milliseconds);
      signal.addEventListener('abort', end);
      waiters.add(look);
    });
  }

  const self: EmbeddedZones = {
    served(milliseconds, signal) {
      return until(() => sinks.size > 0, milliseconds, signal);
    },
    async reload(pool) {
      const { stored, records } = await loadAllLive(pool);
      const former = standing.zones;
      const next = layOut(stored);
      for (const [count, record] of records.entries()) {
        place(next, record);
        if (count % recordsAtOnce === 0) await nextTurn();
      }
      for (const zone of next.zones.values()) await compare(zone, former.get(zone.stored.uuid));
      standing = next;
      for (const [uuid, zone] of next.zones) {
        const before = former.get(uuid);
        if (before === undefined) {
          zone.changed.clear();
          for (const sink of sinks) sink.replace(settingsOf(zone), recordsOf(zone));
          // What goes without a new serial waits for it.
        } else if (JSON.stringify(settingsOf(before)) !== JSON.stringify(settingsOf(zone))) publish(zone);
      }
      for (const [uuid, { stored: old }] of former) {
        if (!next.zones.has(uuid)) for (const sink of sinks) sink.remove(old.zone);
      }
      for (const look of [...waiters]) look();
    },
    async follow(pool, records, gone, told) {
      for (const record of records) place(standing, record);
      for (const uuid of gone) take(standing, uuid);
      if (told === undefined) return;
      if (shapeOf(told.stored) !== standing.shape) return self.reload(pool);
      for (const stored of told.stored) {
        const zone = standing.zones.get(stored.uuid);
        if (zone === undefined) continue;
        zone.position = Math.max(zone.position, told.positions.get(stored.uuid) ?? 0);
        const settled = JSON.stringify(stored.settings) !== JSON.stringify(zone.stored.settings);
        // A serial that was read ahead of its entry waits: what it stands for has not been followed yet.
        const announced =
          stored.serialPosition <= zone.position && stored.serialPosition !== zone.stored.serialPosition;
        if (!settled && !announced) continue;
        const { serial, serialPosition } = announced ? stored : zone.stored;
        zone.stored = { ...stored, serial, serialPosition };
        publish(zone);
      }
      for (const look of [...waiters]) look();
    },
    target(zoneUuid, owner) {
      const data = standing.zones.get(zoneUuid)?.content.get(owner)?.data;
      return typeof data === 'string' ? data : undefined;
    },
    published(zoneUuid, serialPosition, milliseconds, signal) {
      const isPublished = () => (standing.zones.get(zoneUuid)?.stored.serialPosition ?? 0) >= serialPosition;
      return until(isPublished, milliseconds, signal);
    },
    subscribe(sink) {
      for (const zone of standing.zones.values()) sink.replace(settingsOf(zone), recordsOf(zone));
      sinks.add(sink);
      for (const look of [...waiters]) look();
      return () => sinks.delete(sink);
    },
  };
  return self;
}

/** The embedded zones among these, with what they say of the zones inside them, and no records yet. */
function layOut(stored: readonly StoredZone[]): Standing {
  const placed = stored.map((each): PlacedZone => {
    const { nameservers } = each.settings;
    return { ...reverseZoneFromTrusted(each.zone), uuid: each.uuid, driver: each.driver, nameservers };
  });
  const index = new ZoneIndex(placed);
  const nested = nestedNames(placed, index);
  const zones = new Map<string, Served>();
  for (const [at, zone] of placed.entries()) {
    const each = stored[at];
    if (each === undefined || zone.driver !== 'embedded') continue;
    const { cuts = [], aliases = [] } = nested.get(zone) ?? {};
    const content = new Map<string, Entry>(aliases.map(([owner, alias]) => [owner, { data: { alias } }]));
    for (const cut of cuts) {
      const nameservers = nameserversOf(cut, index);
      if (nameservers !== undefined) content.set(cut.name, { data: { nameservers } });
    }
    const nameservers = nameserversOf(zone, index);
    zones.set(zone.uuid, { stored: each, nameservers, position: each.serialPosition, content, changed: new Set() });
  }
  return { shape: shapeOf(stored), index, zones, places: new Map() };
}

function shapeOf(zones: readonly StoredZone[]): string {
  return JSON.stringify(zones.map(({ uuid, zone, driver, settings }) => [uuid, zone, driver, settings.nameservers]));
}

function place({ index, zones, places }: Standing, record: PresentRecord): void {
  const read = parseAddress(record.address);
  const match = read.ok ? index.match(read.address) : undefined;
  const zone = match && zones.get(match.uuid);
  if (!read.ok || match === undefined || zone === undefined || record.deleted) {
    take({ places }, record.uuid);
    return;
  }
  const owner = ownerName(match, read.address);
  const before = zone.content.get(owner);
  zone.content.set(owner, { uuid: record.uuid, data: record.record });
  places.set(record.uuid, { zone, owner });
  if (before?.data !== record.record) zone.changed.add(owner);
}

function take({ places }: Pick<Standing, 'places'>, uuid: string): void {
  const at = places.get(uuid);
  places.delete(uuid);
  // Its successor may stand there already.
  if (at?.zone.content.get(at.owner)?.uuid !== uuid) return;
  at.zone.content.delete(at.owner);
  at.zone.changed.add(at.owner);
}

/** What of a zone that was read anew differs from what was published of it. */
async function compare({ content, changed }: Served, former: Served | undefined): Promise<void> {
  if (former === undefined) return;
  changed.clear();
  for (const owner of former.changed) changed.add(owner);
  let count = 0;
  for (const [owner, { data }] of content) {
    if (!isSame(former.content.get(owner)?.data, data)) changed.add(owner);
    count += 1;
    if (count % recordsAtOnce === 0) await nextTurn();
  }
  for (const owner of former.content.keys()) if (!content.has(owner)) changed.add(owner);
}

function isSame(before: RecordData | undefined, now: RecordData): boolean {
  return before === now || (typeof now === 'object' && JSON.stringify(before) === JSON.stringify(now));
}

function* recordsOf(zone: Served): Generator<ZoneRecord> {
  for (const [owner, { data }] of zone.content) yield [owner, data];
}

function settingsOf({ stored: { zone, serial, settings }, nameservers = ['localhost'] }: Served): ZoneSettings {
  return {
    name: zone,
    serial: serial % 2 ** 32,
    primary: nameservers[0] ?? 'localhost',
    mailbox: mailboxName(settings.admin ?? 'root@localhost'),
    refreshSeconds,
    retrySeconds,
    expireSeconds,
    minimumSeconds,
    ttlSeconds: settings.ttl,
    nameservers,
    secondaries: (settings.secondaries ?? []).map((text) => {
      const place = parseHostPort(text, 53);
      if (place === undefined) throw new Error(`a stored secondary is none: ${text}`);
      return { address: place.host, port: place.port };
    }),
  };
}
