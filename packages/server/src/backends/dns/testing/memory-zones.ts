/** Zones that a test holds in memory, given to the server as the database's are. Test code only. */
import { createServedZones, type ServedZones } from '../served-zones.ts';
import type { RecordData, ZoneRecord, ZoneSettings, ZoneSink, ZoneSource } from '../zone-source.ts';

export interface MemoryZones extends ZoneSource {
  put(zone: ZoneSettings, records: Iterable<ZoneRecord>): void;
  /** The next serial, with what is set and removed. */
  change(zoneName: string, set: Iterable<ZoneRecord>, removed?: Iterable<string>): ZoneSettings;
  remove(zoneName: string): void;
}

export function zoneSettings(name: string, more: Partial<ZoneSettings> = {}): ZoneSettings {
  return {
    name,
    serial: 1,
    primary: 'ns1.example.net',
    mailbox: 'hostmaster.example.net',
    refreshSeconds: 3600,
    retrySeconds: 600,
    expireSeconds: 1_209_600,
    minimumSeconds: 60,
    ttlSeconds: 300,
    nameservers: ['ns1.example.net', 'ns2.example.net'],
    secondaries: [],
    ...more,
  };
}

export function memoryZones(): MemoryZones {
  const zones = new Map<string, { settings: ZoneSettings; records: Map<string, RecordData> }>();
  const sinks = new Set<ZoneSink>();
  return {
    subscribe(sink) {
      for (const { settings, records } of zones.values()) sink.replace(settings, records);
      sinks.add(sink);
      return () => sinks.delete(sink);
    },
    put(settings, records) {
      zones.set(settings.name, { settings, records: new Map(records) });
      for (const sink of sinks) sink.replace(settings, zones.get(settings.name)?.records ?? []);
    },
    change(zoneName, set, removed = []) {
      const zone = zones.get(zoneName);
      if (zone === undefined) throw new Error(`no zone ${zoneName}`);
      zone.settings = { ...zone.settings, serial: (zone.settings.serial + 1) >>> 0 };
      const gone = [...removed];
      const given = [...set];
      for (const owner of gone) zone.records.delete(owner);
      for (const [owner, target] of given) zone.records.set(owner, target);
      for (const sink of sinks) sink.change(zone.settings, given, gone);
      return zone.settings;
    },
    remove(zoneName) {
      zones.delete(zoneName);
      for (const sink of sinks) sink.remove(zoneName);
    },
  };
}

/** What a server holds that was given these zones. */
export function servedZones(...zones: [ZoneSettings, ZoneRecord[]][]): ServedZones {
  const all = createServedZones();
  for (const [settings, records] of zones) all.replace(settings, records);
  return all;
}
