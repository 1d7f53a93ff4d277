/**
 * Follows the change log for reverse DNS: tells the workers of zones what is open, starts and stops them as zones come and
 * go, and gives the embedded DNS server its content. One a replica; a zone's worker runs in one of them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseAddress } from '@levee/core/net/address.ts';
import { type ReverseZone, reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import type { ChangesSince } from '../../store/change-log.ts';
import type { ChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { createHeldLeads } from '../../store/held-leads.ts';
import type { ZoneSource } from '../dns/zone-source.ts';
import { createEmbedded } from './embedded.ts';
import { createEmbeddedZones } from './embedded-zones.ts';
import type { ZoneServer } from './port.ts';
import { createPowerDns } from './powerdns.ts';
import { loadPresent, loadStoredZones, removeOrphans, type StoredZone } from './record-store.ts';
import { createRecordWaiter, type RecordWaiter } from './record-waiter.ts';
import { createRfc2136 } from './rfc2136.ts';
import { startZoneWorker, type ZoneWorker } from './zone-worker.ts';

export interface RdnsReconciler {
  /** For the embedded DNS server. */
  readonly zones: ZoneSource;
  readonly settled: RecordWaiter['settled'];
  stop(): Promise<void>;
}

export interface RdnsReconcilerOptions {
  readonly database: Pick<Database, 'pool' | 'connect'>;
  readonly tail: Pick<ChangeTail, 'subscribe' | 'wake'>;
  readonly log: (message: string) => void;
  /** Whether this replica has an embedded DNS server: others leave its zones alone. */
  readonly servesEmbedded: boolean;
  readonly compareEveryMilliseconds?: number;
  readonly probeEveryMilliseconds?: number;
}

/** How soon a replica takes over from one that died. */
const lockEveryMilliseconds = 1_000;

/** Throws what the driver throws when the database is away: everything is read before it resolves. */
export async function startRdnsReconciler(options: RdnsReconcilerOptions): Promise<RdnsReconciler> {
  const reconciler = new Reconciler(options);
  await reconciler.start();
  return reconciler;
}

type PlacedZone = ReverseZone & { readonly stored: StoredZone };

interface Running {
  /** What the worker was started with: other settings need another. */
  readonly settings: string;
  readonly worker: ZoneWorker;
}

class Reconciler implements RdnsReconciler {
  readonly #options: RdnsReconcilerOptions;
  readonly #embedded = createEmbeddedZones();
  readonly #waiter: RecordWaiter;
  readonly #locks;
  readonly #workers = new Map<string, Running>();
  #index = new ZoneIndex<PlacedZone>([]);
  #stored: readonly StoredZone[] = [];
  #leave: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** What the log told and nobody has looked at yet. */
  #records = new Set<string>();
  #zonePositions = new Map<string, number>();
  #everything = false;
  #lockDue = false;
  #busy: Promise<void> | undefined;

  constructor(options: RdnsReconcilerOptions) {
    this.#options = options;
    this.#waiter = createRecordWaiter(options.database.pool);
    this.#locks = createHeldLeads(options.database, {
      name: 'levee rdns',
      log: options.log,
      onLost: () => this.#lockLost(),
    });
  }

  get zones(): ZoneSource {
    return this.#embedded;
  }

  settled: RecordWaiter['settled'] = (...change) => this.#waiter.settled(...change);

  async start(): Promise<void> {
    this.#leave = this.#options.tail.subscribe({
      changes: (changes) => this.#heard(changes),
      gap: () => {
        this.#everything = true;
        this.#work();
      },
    });
    try {
      await this.#embedded.reload(this.#options.database.pool);
    } catch (error) {
      this.#leave();
      throw error;
    }
    this.#everything = true;
    this.#timer = setInterval(() => {
      this.#lockDue = true;
      this.#work();
    }, lockEveryMilliseconds);
    this.#work();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    this.#leave();
    this.#waiter.stop();
    await this.#busy;
    await this.#stopWorkers([...this.#workers.keys()]);
    await this.#locks.stop();
  }

  #heard({ entries, unsettled }: ChangesSince): void {
    let found = false;
    for (const entry of [...entries, ...unsettled]) {
      if (entry.kind === 'rdns') this.#records.add(entry.objectUuid);
      else if (entry.kind === 'rdns_zone') {
        const known = this.#zonePositions.get(entry.objectUuid) ?? 0;
        this.#zonePositions.set(entry.objectUuid, Math.max(known, entry.position));
      } else continue;
      found = true;
    }
    if (found) this.#work();
  }

  #work(): void {
    if (this.#busy !== undefined || this.#stopped) return;
    this.#busy = this.#loop().finally(() => {
      this.#busy = undefined;
      if (this.#hasWork()) this.#work();
    });
  }

  #hasWork(): boolean {
    return this.#everything || this.#lockDue || this.#records.size > 0 || this.#zonePositions.size > 0;
  }

  async #loop(): Promise<void> {
    let failing = false;
    while (this.#hasWork() && !this.#stopped) {
      const records = this.#records;
      const positions = this.#zonePositions;
      const everything = this.#everything;
      this.#records = new Set();
      this.#zonePositions = new Map();
      this.#everything = false;
      this.#lockDue = false;
      try {
        await this.#look(records, positions, everything);
        failing = false;
      } catch (error) {
        // What was heard is looked at again: all of it, since it is not known how far this came.
        this.#everything = true;
        if (!failing) this.#options.log(`reverse DNS cannot be looked after: ${(error as Error).message}`);
        failing = true;
        await delay(250);
      }
    }
  }

  async #look(uuids: ReadonlySet<string>, positions: ReadonlyMap<string, number>, everything: boolean): Promise<void> {
    const { pool } = this.#options.database;
    // Zones first: what they say is then never older than the records.
    const zonesTold = everything || positions.size > 0;
    if (zonesTold) this.#keep(await loadStoredZones(pool));
    const present = uuids.size === 0 ? [] : await loadPresent(pool, [...uuids]);
    if (everything) {
      await this.#embedded.reload(pool);
    } else {
      const found = new Set(present.map(({ uuid }) => uuid));
      const gone = [...uuids].filter((uuid) => !found.has(uuid));
      const told = positions.size > 0 ? { positions, stored: this.#stored } : undefined;
      await this.#embedded.follow(pool, present, gone, told);
    }
    await this.#assign();
    for (const record of present) if (record.open) this.#wakeFor(record.address);
    if (everything) for (const { worker } of this.#workers.values()) worker.wake();
    const orphaned = present.some((record) => record.deleted && this.#zoneOf(record.address) === undefined);
    if ((zonesTold || orphaned) && (await removeOrphans(pool)) > 0) this.#options.tail.wake();
    this.#waiter.look(zonesTold ? undefined : uuids);
  }

  #keep(stored: readonly StoredZone[]): void {
    this.#stored = stored;
    this.#index = new ZoneIndex(stored.map((each) => ({ ...reverseZoneFromTrusted(each.zone), stored: each })));
  }

  #zoneOf(address: string): PlacedZone | undefined {
    const read = parseAddress(address);
    return read.ok ? this.#index.match(read.address) : undefined;
  }

  #wakeFor(address: string): void {
    const zone = this.#zoneOf(address);
    if (zone !== undefined) this.#workers.get(zone.stored.uuid)?.worker.wake();
  }

  /** Takes what zones can be had, and has a worker for each of them, started with its present settings. */
  async #assign(): Promise<void> {
    const wanted = this.#stored.filter(({ driver }) => driver !== 'embedded' || this.#options.servesEmbedded);
    const kept = new Map(wanted.map((zone) => [zone.uuid, settingsText(zone)]));
    const outdated = [...this.#workers].filter(([uuid, { settings }]) => kept.get(uuid) !== settings);
    // Before the lock is let go of: never two that write.
    await this.#stopWorkers(outdated.map(([uuid]) => uuid));
    const held = await this.#locks.hold([...kept.keys()].map(leadOf));
    for (const zone of wanted) {
      if (!held.has(leadOf(zone.uuid)) || this.#workers.has(zone.uuid) || this.#stopped) continue;
      this.#workers.set(zone.uuid, { settings: settingsText(zone), worker: this.#start(zone) });
    }
  }

  #start(stored: StoredZone): ZoneWorker {
    const { database, tail, log, compareEveryMilliseconds, probeEveryMilliseconds } = this.#options;
    return startZoneWorker({
      pool: database.pool,
      uuid: stored.uuid,
      zone: reverseZoneFromTrusted(stored.zone),
      server: this.#serverOf(stored),
      prove: this.#locks.prove,
      committed: () => tail.wake(),
      log,
      ...(compareEveryMilliseconds !== undefined && { compareEveryMilliseconds }),
      ...(probeEveryMilliseconds !== undefined && { probeEveryMilliseconds }),
    });
  }

  #serverOf({ uuid, zone, driver, settings }: StoredZone): ZoneServer {
    const { server = '', tsig, api_key: apiKey = '', nameservers, ttl: ttlSeconds } = settings;
    switch (driver) {
      case 'embedded': {
        const { database, tail } = this.#options;
        return createEmbedded({ pool: database.pool, uuid, zones: this.#embedded, committed: () => tail.wake() });
      }
      case 'rfc2136':
        return createRfc2136({ zone, server, tsig, ttlSeconds });
      case 'powerdns':
        return createPowerDns({ zone, server, apiKey, nameservers, ttlSeconds });
    }
  }

  async #stopWorkers(uuids: readonly string[]): Promise<void> {
    const running = uuids.flatMap((uuid) => this.#workers.get(uuid) ?? []);
    for (const uuid of uuids) this.#workers.delete(uuid);
    await Promise.all(running.map(({ worker }) => worker.stop()));
  }

  #lockLost(): void {
    this.#options.log('the connection that holds the zones of reverse DNS is gone: taking them anew');
    void this.#stopWorkers([...this.#workers.keys()]);
    this.#lockDue = true;
    this.#work();
  }
}

function leadOf(uuid: string): string {
  return `rdns_zone ${uuid}`;
}

function settingsText({ zone, driver, settings }: StoredZone): string {
  return JSON.stringify([zone, driver, settings]);
}
