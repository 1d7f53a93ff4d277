/**
 * The zones that the embedded DNS server of this replica serves, read from the database and kept up to date by the
 * change log. Content goes together with its serial: what changed is published when the log says that a new serial was
 * given, so that every replica serves the same under the same serial.
 *
 * A serial is of whole seconds since 1970, and one more than the last where that is not enough: it rises also when an
 * installation begins anew with the same zones, which positions in the log would not (RFC 1982).
 */
import { parseAddress } from '@levee/core/net/address.ts';
import { ownerName, type ReverseZone, reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import { mailboxName, parseHostPort } from '@levee/core/rdns/zone-settings.ts';
import type pg from 'pg';
import type { ZoneSettings, ZoneSink, ZoneSource } from '../dns/zone-source.ts';
import { loadAllLive, type PresentRecord, type StoredZone } from './record-store.ts';

export interface EmbeddedZones extends ZoneSource {
  /** Whether a server takes the zones, or does within the time: it starts after this. */
  served(milliseconds: number, signal: AbortSignal): Promise<boolean>;
  /** Reads everything anew. Throws what the driver throws. */
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

interface Served {
  stored: StoredZone;
  /** The last entry about it that was followed. */
  position: number;
  readonly content: Map<string, { readonly uuid: string; readonly target: string }>;
  /** Owners that are different from what was last published. */
  readonly changed: Set<string>;
}

/** Secondaries are notified of changes: these are for when that fails. */
const refreshSeconds = 3_600;
const retrySeconds = 600;
const expireSeconds = 14 * 24 * 3_600;
/** A new record is not hidden for long by an answer that there was none. */
const minimumSeconds = 60;

export function createEmbeddedZones(): EmbeddedZones {
  const sinks = new Set<ZoneSink>();
  const waiters = new Set<() => void>();
  let zones = new Map<string, Served>();
  let shape = '';
  let index = new ZoneIndex<ReverseZone & { readonly uuid: string }>([]);
  /** Record → where it stands. */
  let places = new Map<string, { readonly zone: Served; readonly owner: string }>();

  function place(record: PresentRecord): void {
    const read = parseAddress(record.address);
    const match = read.ok ? index.match(read.address) : undefined;
    const zone = match && zones.get(match.uuid);
    if (!read.ok || match === undefined || zone === undefined || record.deleted) {
      take(record.uuid);
      return;
    }
    const owner = ownerName(match, read.address);
    const before = zone.content.get(owner);
    zone.content.set(owner, { uuid: record.uuid, target: record.record });
    places.set(record.uuid, { zone, owner });
    if (before?.target !== record.record) zone.changed.add(owner);
  }

  function take(uuid: string): void {
    const at = places.get(uuid);
    places.delete(uuid);
    // Its successor may stand there already.
    if (at?.zone.content.get(at.owner)?.uuid !== uuid) return;
    at.zone.content.delete(at.owner);
    at.zone.changed.add(at.owner);
  }

  function publish(zone: Served): void {
    const set: [string, string][] = [];
    const removed: string[] = [];
    for (const owner of zone.changed) {
      const present = zone.content.get(owner);
      if (present === undefined) removed.push(owner);
      else set.push([owner, present.target]);
    }
    zone.changed.clear();
    for (const sink of sinks) sink.change(settingsOf(zone.stored), set, removed);
    for (const look of [...waiters]) look();
  }

  function* recordsOf(zone: Served): Generator<readonly [string, string]> {
    for (const [owner, { target }] of zone.content) yield [owner, target];
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
      const former = zones;
      zones = new Map();
      places = new Map();
      shape = shapeOf(stored);
      index = new ZoneIndex(stored.map((each) => ({ ...reverseZoneFromTrusted(each.zone), uuid: each.uuid })));
      for (const each of stored.filter(({ driver }) => driver === 'embedded')) {
        zones.set(each.uuid, { stored: each, position: each.serialPosition, content: new Map(), changed: new Set() });
      }
      for (const record of records) place(record);
      for (const zone of zones.values()) {
        zone.changed.clear();
        for (const sink of sinks) sink.replace(settingsOf(zone.stored), recordsOf(zone));
      }
      for (const [uuid, { stored: old }] of former) {
        if (!zones.has(uuid)) for (const sink of sinks) sink.remove(old.zone);
      }
      for (const look of [...waiters]) look();
    },
    async follow(pool, records, gone, told) {
      for (const record of records) place(record);
      for (const uuid of gone) take(uuid);
      if (told === undefined) return;
      if (shapeOf(told.stored) !== shape) return self.reload(pool);
      for (const stored of told.stored) {
        const zone = zones.get(stored.uuid);
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
    },
    target: (zoneUuid, owner) => zones.get(zoneUuid)?.content.get(owner)?.target,
    published(zoneUuid, serialPosition, milliseconds, signal) {
      const isPublished = () => (zones.get(zoneUuid)?.stored.serialPosition ?? 0) >= serialPosition;
      return until(isPublished, milliseconds, signal);
    },
    subscribe(sink) {
      for (const zone of zones.values()) sink.replace(settingsOf(zone.stored), recordsOf(zone));
      sinks.add(sink);
      for (const look of [...waiters]) look();
      return () => sinks.delete(sink);
    },
  };
  return self;
}

/** Which addresses go where: when that changes, everything is read anew. */
function shapeOf(zones: readonly StoredZone[]): string {
  return zones.map(({ uuid, zone, driver }) => `${uuid} ${zone} ${driver}`).join('\n');
}

function settingsOf({ zone, serial, settings }: StoredZone): ZoneSettings {
  const nameservers = settings.nameservers ?? ['localhost'];
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
