/**
 * An enforcer on a kernel and tunnels in memory and files on disk, with a control plane reduced to its log: for tests that cut the
 * three apart at chosen moments. Never used outside of tests.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { markChainName, tableName } from '@levee/core/nftables/names.ts';
import { pino } from 'pino';
import { createFakeNft, type FakeNft } from '../drivers/nft/fake.ts';
import { understand } from '../plan/desired.ts';
import { createEnforcer, type Enforcer } from '../plan/enforcer.ts';
import { ingressObstacle } from '../plan/ingress.ts';
import { createInstaller, type Installed, type Installer } from '../plan/installer.ts';
import { createMarks, readMark } from '../plan/mark.ts';
import { type AgentEntry, type AgentObjects, isAgentFilter } from '../state/objects.ts';
import { openStateStore, type StateStore } from '../state/store.ts';
import { createFakeTunnels, type FakeTunnels } from '../tunnels/fake.ts';
import { objectsOf, rulesAlone } from './objects.ts';

/** The kernel in memory refuses every statement about these rates. */
export const refusedRate = 66_666;
export const refusedMegabits = 666;
/** Tunnels with this number fail. */
export const refusedNumber = 6_666;

export interface Rig {
  readonly world: FakeNft;
  readonly enforcer: Enforcer;
  readonly tunnels: FakeTunnels;
  readonly wanted: Map<string, AgentEntry>;
  readonly wantedTunnels: Map<string, AgentTunnel>;
  /** What was acknowledged although it was not in force. */
  readonly lies: readonly string[];
  /** Another program takes the table away. */
  meddle(): void;
  /** Changes of the control plane's state. */
  change(upsert: readonly (AgentEntry | AgentTunnel)[], remove: readonly string[]): void;
  /** Hands over what is new since the enforcer's cursor. */
  deliver(): Promise<void>;
  deliverSnapshot(): Promise<void>;
  /** From the next transaction on the process is dead: before the kernel did it, or after. */
  dieAt(moment: 'before' | 'after'): void;
  readonly dead: boolean;
  /** Another process on the same files and the same kernel. */
  restart(): Promise<void>;
  /** The same, with the files gone. */
  loseState(): Promise<void>;
  /** `false`: what is delivered comes from a control plane that knows rules alone. */
  tellAll(all: boolean): void;
  /** From the next restart on, the edge does not know the kernel for the one that had its tunnels. */
  boot(): void;
  idle(): Promise<void>;
  /** What the kernel's table must hold for the wanted entries. */
  expected(): Promise<string>;
  dump(): string;
  close(): Promise<void>;
}

/** Of `1.<position>`. */
const positionOf = (cursor: string): number => Number(cursor.split('.')[1]);

/** Of one process. */
interface Life {
  dying: 'before' | 'after' | undefined;
  /** A change is on its way into the table. */
  installing: boolean;
  /** The last position whose table was seen in force. */
  tableAt: number;
  readonly dead: boolean;
  readonly death: Promise<void>;
  die(): void;
}

function newLife(): Life {
  const { promise, resolve } = Promise.withResolvers<void>();
  let dead = false;
  return {
    dying: undefined,
    installing: false,
    tableAt: -1,
    get dead() {
      return dead;
    },
    death: promise,
    die() {
      dead = true;
      resolve();
    },
  };
}

const never = new Promise<never>(() => undefined);

export function isReadable(entry: AgentEntry): boolean {
  return understand(entry).ok;
}

export function isTakenByKernel(entry: AgentEntry): boolean {
  if (isAgentFilter(entry)) return entry.ratelimit !== refusedMegabits;
  return entry.ratelimit !== refusedRate || entry.disabled;
}

export function isMade(tunnel: AgentTunnel): boolean {
  return tunnel.number !== refusedNumber;
}

const isTunnel = (object: AgentEntry | AgentTunnel): object is AgentTunnel => 'endpoint' in object;

async function tableOf(entries: Iterable<AgentEntry>, ingressDevices: readonly string[]): Promise<string> {
  const readable = [...entries].filter(isTakenByKernel).flatMap((wire) => {
    const understood = understand(wire);
    return understood.ok ? [understood.entry] : [];
  });
  const world = createFakeNft();
  await world.open().driver.apply(createCompiler({ ingressDevices }).replace(readable, '0'.repeat(16)).text);
  return world.dump(tableName, markChainName);
}

/** As one text, whatever their order. */
export function textOf(tunnels: ReadonlyMap<string, AgentTunnel>): string {
  return [...tunnels.values()]
    .filter(isMade)
    .map((tunnel) => JSON.stringify(tunnel))
    .sort()
    .join('\n');
}

/** In memory where the system has such a directory: thousands of syncs of a disk would take minutes. */
const directories = '/dev/shm';

export interface RigOptions {
  readonly foldAboveBytes?: number;
  readonly ingressDevices?: readonly string[];
}

export async function createRig({ foldAboveBytes = 600, ingressDevices = [] }: RigOptions = {}): Promise<Rig> {
  const directory = mkdtempSync(join(directories, `levee-rig-${process.pid}-`));
  const world = createFakeNft();
  const refusedTexts = [` ${refusedRate}/second`, ` ${refusedMegabits * 125_000} bytes/second`];
  world.refuse = (statement) =>
    refusedTexts.some((text) => statement.includes(text)) ? 'Numerical result out of range' : undefined;
  const tunnels = createFakeTunnels();
  tunnels.refuse = (tunnel) => (isMade(tunnel) ? undefined : 'refused');
  const wanted = new Map<string, AgentEntry>();
  const wantedTunnels = new Map<string, AgentTunnel>();
  const log: { position: number; uuid: string }[] = [];
  /** At each position that was handed over: the table, and the tunnels as text. */
  const states: { position: number; table: string; tunnels: string }[] = [];
  const lies: string[] = [];
  let position = 0;
  let meddled = false;
  let tellsAll = true;
  let tunnelsStay = true;
  /** The last position that was acknowledged, by whichever process. */
  let acknowledged = -1;
  /** Of the present process; one that died stays dead when the next one runs. */
  let life = newLife();
  let store: StateStore;
  let enforcer: Enforcer | undefined;

  /** What is acknowledged must be done; what comes later may be, too. */
  const check = (applied: string | undefined): void => {
    const at = applied === undefined ? -1 : positionOf(applied);
    // Between two transactions of one change the table is neither the one nor the other.
    if (!life.installing) {
      const table = world.dump(tableName, markChainName);
      const reached = states.findLast((state) => state.table === table)?.position ?? -1;
      if (reached >= Math.max(0, at)) meddled = false;
      else if (applied !== undefined && !meddled) lies.push(`table at ${applied}`);
      life.tableAt = Math.max(life.tableAt, reached);
    } else if (at > life.tableAt && !meddled) lies.push(`table on its way to ${applied}`);
    const present = textOf(tunnels.devices);
    const isMet = states.some((state) => state.position >= at && state.tunnels === present);
    if (applied !== undefined && !isMet) lies.push(`tunnels at ${applied}`);
  };

  const start = async (): Promise<void> => {
    const own = newLife();
    life = own;
    const { driver, kernel } = world.open();
    const mortal = {
      ...driver,
      async apply(text: string) {
        if (own.dying === 'before') own.die();
        if (own.dead) return never;
        const result = await driver.apply(text);
        if (own.dying === 'after') own.die();
        return own.dead ? never : result;
      },
    };
    const settled = (applied: string | undefined): void => {
      // In trouble it repeats what was acknowledged before, and says so.
      if (own.dead || enforcer?.trouble !== undefined) return;
      check(applied);
      if (applied !== undefined) acknowledged = positionOf(applied);
    };
    const marks = createMarks({ ingressDevices });
    store = openStateStore(directory, foldAboveBytes);
    const installer = createInstaller({
      driver: mortal,
      createCompiler: () => createCompiler({ ingressDevices }),
      newMark: marks.next,
      readMark: () => readMark(driver, kernel),
      beforeFlush: () => undefined,
      afterFlush: () => undefined,
      own: (work) => work(),
    });
    const noted = async (work: () => Promise<Installed>): Promise<Installed> => {
      own.installing = true;
      const outcome = await work();
      own.installing = false;
      return outcome;
    };
    const watched: Installer = {
      get compiler() {
        return installer.compiler;
      },
      get mark() {
        return installer.mark;
      },
      adopt: installer.adopt,
      change: (delta, mark) => noted(() => installer.change(delta, mark)),
      replace: (entries, mark) => noted(() => installer.replace(entries, mark)),
    };
    enforcer = createEnforcer({
      store,
      enforcement: {
        installer: watched,
        marks,
        readMark: () => readMark(driver, kernel),
        adopted: async () => undefined,
      },
      tunnels: tunnels.open({ changed: () => settled(enforcer?.applied) }, () => !own.dead),
      tunnelsStay,
      obstacle: ingressObstacle(ingressDevices),
      batchMilliseconds: 0,
      retryMilliseconds: 5,
      logger: pino({ level: 'silent' }),
      settled,
    });
    const starting = enforcer.start();
    await Promise.race([starting, own.death]);
    if (own.dead) return;
    // What was taken over as it is, before anything else is asked of the table.
    const { resumes, trouble } = enforcer;
    const stands = resumes === undefined ? -1 : Math.min(acknowledged, positionOf(resumes));
    check(stands < 0 || trouble !== undefined ? undefined : `1.${stands}`);
  };
  const told = (entries: readonly AgentEntry[], present: readonly AgentTunnel[]): AgentObjects =>
    tellsAll ? objectsOf(entries, present) : rulesAlone(entries.filter((entry) => !isAgentFilter(entry)));
  const cursorNow = (): string => `1.${position}`;

  /** Also kept for the moment at which the present cursor is acknowledged. */
  const expected = async (): Promise<string> => {
    const at = position;
    const present = textOf(wantedTunnels);
    const table = await tableOf(wanted.values(), ingressDevices);
    states.push({ position: at, table, tunnels: present });
    return table;
  };
  const deliverSnapshot = async (): Promise<void> => {
    await expected();
    enforcer?.snapshot(cursorNow(), told([...wanted.values()], [...wantedTunnels.values()]));
  };
  const deliver = async (): Promise<void> => {
    const at = enforcer?.cursor === undefined ? -1 : positionOf(enforcer.cursor);
    if (at < 0) return deliverSnapshot();
    const named = new Set(log.filter((entry) => entry.position > at).map((entry) => entry.uuid));
    if (named.size === 0) return;
    await expected();
    enforcer?.changes(
      cursorNow(),
      told(
        [...named].flatMap((uuid) => wanted.get(uuid) ?? []),
        [...named].flatMap((uuid) => wantedTunnels.get(uuid) ?? []),
      ),
      [...named].filter((uuid) => !wanted.has(uuid) && !wantedTunnels.has(uuid)),
    );
  };

  states.push({ position, table: await tableOf([], ingressDevices), tunnels: '' });
  await start();
  return {
    world,
    get enforcer() {
      return enforcer as Enforcer;
    },
    tunnels,
    wanted,
    wantedTunnels,
    lies,
    meddle() {
      meddled = true;
      world.foreign(`add table inet ${tableName}\ndelete table inet ${tableName}`);
    },
    get dead() {
      return life.dead;
    },
    change(upsert, remove) {
      for (const object of upsert) {
        if (isTunnel(object)) wantedTunnels.set(object.uuid, object);
        else wanted.set(object.uuid, object);
      }
      for (const uuid of remove) {
        wanted.delete(uuid);
        wantedTunnels.delete(uuid);
      }
      for (const uuid of [...upsert.map((object) => object.uuid), ...remove]) {
        position += 1;
        log.push({ position, uuid });
      }
    },
    deliver,
    deliverSnapshot,
    dieAt(moment) {
      life.dying = moment;
    },
    async restart() {
      life.die();
      await store.close();
      await start();
    },
    async loseState() {
      life.die();
      await store.close();
      for (const name of readdirSync(directory)) rmSync(join(directory, name));
      await start();
    },
    tellAll(all) {
      tellsAll = all;
    },
    boot() {
      tunnelsStay = false;
    },
    async idle() {
      await Promise.race([enforcer?.idle(), life.death]);
      // The tunnels are told right after the journal.
      do await new Promise((resolve) => setImmediate(resolve));
      while (tunnels.busy && !tunnels.held && !life.dead);
    },
    expected,
    dump: () => world.dump(tableName, markChainName),
    async close() {
      life.die();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
