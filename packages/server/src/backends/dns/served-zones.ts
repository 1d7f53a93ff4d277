/**
 * Owns the server's own copy of the zones: which zone a name belongs to, whether it exists, what it points to. What could
 * not be put into a message is refused when it is given, so that no query ever meets it. Knows no messages, no sockets.
 */
import { parseAddress } from '@levee/core/net/address.ts';
import { isName, labelsOf, nameOfTreeKey, treeKey } from './name.ts';
import { RecordList } from './record-list.ts';
import type { RecordData, ZoneRecord, ZoneSettings, ZoneSink } from './zone-source.ts';

export interface ServedZone {
  readonly settings: ZoneSettings;
  /** Of the zone's own name. */
  readonly labelCount: number;
  /** Tree key of the owner, without the zone's labels → what stands there. */
  readonly records: RecordList<RecordData>;
  /** Of the owners where a zone below begins. */
  readonly cuts: Set<string>;
}

/** As a sink it throws a RangeError for what could not be put into a message, and leaves the zone as it was. */
export interface ServedZones extends ZoneSink {
  get(name: string): ServedZone | undefined;
  all(): Iterable<ServedZone>;
  /** The zone with the most labels among those that the name lies in. */
  find(labels: readonly string[]): ServedZone | undefined;
  /** Whether the name is the zone's own, or has a record, or something below it has (RFC 8020, RFC 4592 2.2.2). */
  exists(zone: ServedZone, labels: readonly string[]): boolean;
  /** Called after a zone is new, different or gone. Returns how to leave. */
  onChange(listener: (zoneName: string) => void): () => void;
}

/** Where a name stands inside its zone, as the key of its records. */
export function keyInZone(zone: ServedZone, labels: readonly string[]): string {
  return treeKey(labels.slice(0, labels.length - zone.labelCount));
}

/** The name at which a zone below begins that the name lies in, and that zone's name servers. */
export function cutAbove(
  zone: ServedZone,
  labels: readonly string[],
): { readonly labels: readonly string[]; readonly nameservers: readonly string[] } | undefined {
  if (zone.cuts.size === 0) return undefined;
  for (let from = labels.length - zone.labelCount - 1; from >= 0; from -= 1) {
    const above = labels.slice(from);
    const key = keyInZone(zone, above);
    const data = zone.cuts.has(key) ? zone.records.get(key) : undefined;
    if (typeof data === 'object' && 'nameservers' in data) return { labels: above, nameservers: data.nameservers };
  }
  return undefined;
}

/** The records as they are when this is called: owners whole, in the order of the tree. */
export function recordsOf(zone: ServedZone): Iterable<ZoneRecord> {
  const snapshot = zone.records.snapshot();
  const { name } = zone.settings;
  return {
    *[Symbol.iterator]() {
      for (const [key, data] of snapshot) yield [`${nameOfTreeKey(key)}.${name}`, data] as const;
    },
  };
}

export function createServedZones(): ServedZones {
  return new Zones();
}

class Zones implements ServedZones {
  readonly #zones = new Map<string, ServedZone>();
  /** Tree keys of the zones' names: a zone far below makes the names between exist. */
  readonly #names = new RecordList<string>();
  /** How many labels zones have, most first. */
  #labelCounts: readonly number[] = [];
  readonly #listeners = new Set<(zoneName: string) => void>();

  get(name: string): ServedZone | undefined {
    return this.#zones.get(name);
  }

  all(): Iterable<ServedZone> {
    return this.#zones.values();
  }

  find(labels: readonly string[]): ServedZone | undefined {
    for (const count of this.#labelCounts) {
      if (count > labels.length) continue;
      const zone = this.#zones.get(labels.slice(labels.length - count).join('.'));
      if (zone !== undefined) return zone;
    }
    return undefined;
  }

  exists(zone: ServedZone, labels: readonly string[]): boolean {
    return (
      labels.length === zone.labelCount ||
      zone.records.hasBeginning(keyInZone(zone, labels)) ||
      this.#names.hasBeginning(treeKey(labels))
    );
  }

  replace(settings: ZoneSettings, records: Iterable<ZoneRecord>): void {
    checkSettings(settings);
    const entries: [string, RecordData][] = [];
    for (const [owner, data] of records) entries.push([ownerKey(settings, owner), checkData(owner, data)]);
    const labels = labelsOf(settings.name);
    const cuts = new Set(entries.filter(([, data]) => isCut(data)).map(([key]) => key));
    this.#zones.set(settings.name, { settings, labelCount: labels.length, records: new RecordList(entries), cuts });
    this.#names.set(treeKey(labels), settings.name);
    this.#countLabels();
    this.#tell(settings.name);
  }

  change(settings: ZoneSettings, set: Iterable<ZoneRecord>, removed: Iterable<string>): void {
    const zone = this.#zones.get(settings.name);
    if (zone === undefined) throw new RangeError(`zone ${settings.name} was never given`);
    checkSettings(settings);
    // Everything is read before anything is done: a bad record leaves the zone as it was.
    const gone = Array.from(removed, (owner) => ownerKey(settings, owner));
    const given = Array.from(set, ([owner, data]) => [ownerKey(settings, owner), checkData(owner, data)] as const);
    for (const key of gone) {
      zone.records.delete(key);
      zone.cuts.delete(key);
    }
    for (const [key, data] of given) {
      zone.records.set(key, data);
      if (isCut(data)) zone.cuts.add(key);
      else zone.cuts.delete(key);
    }
    this.#zones.set(settings.name, { ...zone, settings });
    this.#tell(settings.name);
  }

  remove(zoneName: string): void {
    if (!this.#zones.delete(zoneName)) return;
    this.#names.delete(treeKey(labelsOf(zoneName)));
    this.#countLabels();
    this.#tell(zoneName);
  }

  onChange(listener: (zoneName: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #countLabels(): void {
    const counts = new Set(Array.from(this.#zones.values(), (zone) => zone.labelCount));
    this.#labelCounts = [...counts].sort((a, b) => b - a);
  }

  #tell(zoneName: string): void {
    for (const listener of [...this.#listeners]) listener(zoneName);
  }
}

const serialMaximum = 0xffff_ffff;
/** RFC 2181, 8. */
const secondsMaximum = 0x7fff_ffff;

/** Throws a RangeError that says what the source must not give. */
function checkSettings(zone: ZoneSettings): void {
  const refuse = (what: string): never => {
    throw new RangeError(`zone ${zone.name}: ${what}`);
  };
  const whole = (value: number, maximum: number) => Number.isInteger(value) && value >= 0 && value <= maximum;
  if (zone.name === '' || !isName(zone.name)) refuse('not a name');
  if (zone.nameservers.length === 0) refuse('no name server');
  for (const name of [zone.primary, zone.mailbox, ...zone.nameservers]) {
    if (name === '' || !isName(name)) refuse(`${JSON.stringify(name)} is no name`);
  }
  if (!whole(zone.serial, serialMaximum)) refuse(`serial ${zone.serial}`);
  const { refreshSeconds, retrySeconds, expireSeconds, minimumSeconds, ttlSeconds } = zone;
  for (const seconds of [refreshSeconds, retrySeconds, expireSeconds, minimumSeconds, ttlSeconds]) {
    if (!whole(seconds, secondsMaximum)) refuse(`${seconds} seconds`);
  }
  for (const { address, port } of zone.secondaries) {
    if (!parseAddress(address).ok || !whole(port, 65_535) || port === 0) refuse(`secondary ${address} port ${port}`);
  }
}

function ownerKey(zone: ZoneSettings, owner: string): string {
  const inside = owner.length - zone.name.length - 1;
  if (inside > 0 && owner.endsWith(zone.name) && owner[inside] === '.' && isName(owner) && !/[A-Z]/.test(owner)) {
    return treeKey(labelsOf(owner.slice(0, inside)));
  }
  throw new RangeError(`${JSON.stringify(owner)} is no name inside zone ${zone.name}`);
}

function isCut(data: RecordData): boolean {
  return typeof data === 'object' && 'nameservers' in data;
}

function checkData(owner: string, data: RecordData): RecordData {
  const names = typeof data === 'string' ? [data] : 'alias' in data ? [data.alias] : data.nameservers;
  if (names.length === 0) throw new RangeError(`${owner} has no name server`);
  for (const name of names) {
    if (name === '' || !isName(name))
      throw new RangeError(`${owner} leads to ${JSON.stringify(name)}, which is no name`);
  }
  return data;
}
