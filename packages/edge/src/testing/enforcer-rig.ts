/**
 * An enforcer on a kernel in memory and files on disk, with a control plane reduced to its log: for tests that cut the
 * three apart at chosen moments. Never used outside of tests.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentRule } from '@levee/contract/agent.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { markSetName, tableName } from '@levee/core/nftables/names.ts';
import { pino } from 'pino';
import { createFakeNft, type FakeNft } from '../drivers/nft/fake.ts';
import { understand } from '../plan/desired.ts';
import { createEnforcer, type Enforcer } from '../plan/enforcer.ts';
import { ingressObstacle } from '../plan/ingress.ts';
import { createInstaller } from '../plan/installer.ts';
import { createMarks, readMark } from '../plan/mark.ts';
import { openStateStore, type StateStore } from '../state/store.ts';

/** The kernel in memory refuses every statement about this rate. */
export const refusedRate = 66_666;

export interface Rig {
  readonly world: FakeNft;
  readonly enforcer: Enforcer;
  readonly wanted: Map<string, AgentRule>;
  /** What was acknowledged although it was not in force. */
  readonly lies: readonly string[];
  /** Another program takes the table away. */
  meddle(): void;
  /** Changes of the control plane's state. */
  change(upsert: readonly AgentRule[], remove: readonly string[]): void;
  /** Hands over what is new since the enforcer's cursor. */
  deliver(): Promise<void>;
  deliverSnapshot(): Promise<void>;
  /** From the next transaction on the process is dead: before the kernel did it, or after. */
  dieAt(moment: 'before' | 'after'): void;
  readonly dead: boolean;
  /** Another process on the same files and the same kernel. */
  restart(): Promise<void>;
  idle(): Promise<void>;
  /** What the kernel must hold for the wanted rules. */
  expected(): Promise<string>;
  dump(): string;
  close(): Promise<void>;
}

const never = new Promise<never>(() => undefined);

export function isReadable(rule: AgentRule): boolean {
  return understand(rule).ok;
}

export function isTakenByKernel(rule: AgentRule): boolean {
  return rule.ratelimit !== refusedRate || rule.disabled;
}

async function tableOf(rules: Iterable<AgentRule>, ingressDevices: readonly string[]): Promise<string> {
  const readable = [...rules].filter(isTakenByKernel).flatMap((wire) => {
    const understood = understand(wire);
    return understood.ok ? [understood.rule] : [];
  });
  const world = createFakeNft();
  await world.open().driver.apply(createCompiler({ ingressDevices }).replace(readable, '0'.repeat(16)).text);
  return world.dump(tableName, markSetName);
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
  world.refuse = (statement) =>
    statement.includes(` ${refusedRate}/second`) ? 'Numerical result out of range' : undefined;
  const wanted = new Map<string, AgentRule>();
  const log: { position: number; uuid: string }[] = [];
  const tables = new Map<string, string>();
  const lies: string[] = [];
  let position = 0;
  let meddled = false;
  /** Of the present process; one that died stays dead when the next one runs. */
  let life: { dying: 'before' | 'after' | undefined; dead: boolean } = { dying: undefined, dead: false };
  let store: StateStore;
  let enforcer: Enforcer | undefined;

  const start = async (): Promise<void> => {
    const own: typeof life = { dying: undefined, dead: false };
    life = own;
    const { driver, kernel } = world.open();
    const mortal = {
      ...driver,
      async apply(text: string) {
        if (own.dying === 'before') own.dead = true;
        if (own.dead) return never;
        const result = await driver.apply(text);
        if (own.dying === 'after') own.dead = true;
        return own.dead ? never : result;
      },
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
    enforcer = createEnforcer({
      store,
      enforcement: { installer, marks, readMark: () => readMark(driver, kernel), adopted: async () => undefined },
      obstacle: ingressObstacle(ingressDevices),
      batchMilliseconds: 0,
      retryMilliseconds: 5,
      logger: pino({ level: 'silent' }),
      settled(applied) {
        // In trouble it repeats what was acknowledged before, and says so.
        if (own.dead || applied === undefined || enforcer?.trouble !== undefined) return;
        if (world.dump(tableName, markSetName) === tables.get(applied)) meddled = false;
        else if (!meddled) lies.push(applied);
      },
    });
    const starting = enforcer.start();
    await Promise.race([starting, untilDead()]);
  };
  const untilDead = async (): Promise<void> => {
    while (!life.dead) await new Promise((resolve) => setImmediate(resolve));
  };
  const cursorNow = (): string => `1.${position}`;

  /** Also kept for the moment at which the present cursor is acknowledged. */
  const expected = (): Promise<string> => {
    const cursor = cursorNow();
    return tableOf(wanted.values(), ingressDevices).then((text) => {
      tables.set(cursor, text);
      return text;
    });
  };
  const deliverSnapshot = async (): Promise<void> => {
    await expected();
    enforcer?.snapshot(cursorNow(), [...wanted.values()]);
  };
  const deliver = async (): Promise<void> => {
    const at = Number(enforcer?.cursor?.split('.')[1] ?? -1);
    if (at < 0) return deliverSnapshot();
    const named = new Set(log.filter((entry) => entry.position > at).map((entry) => entry.uuid));
    if (named.size === 0) return;
    await expected();
    enforcer?.changes(
      cursorNow(),
      [...named].flatMap((uuid) => wanted.get(uuid) ?? []),
      [...named].filter((uuid) => !wanted.has(uuid)),
    );
  };

  tables.set(cursorNow(), await tableOf([], ingressDevices));
  await start();
  return {
    world,
    get enforcer() {
      return enforcer as Enforcer;
    },
    wanted,
    lies,
    meddle() {
      meddled = true;
      world.foreign(`add table inet ${tableName}\ndelete table inet ${tableName}`);
    },
    get dead() {
      return life.dead;
    },
    change(upsert, remove) {
      for (const rule of upsert) wanted.set(rule.uuid, rule);
      for (const uuid of remove) wanted.delete(uuid);
      for (const uuid of [...upsert.map((rule) => rule.uuid), ...remove]) {
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
      life.dead = true;
      await store.close();
      await start();
    },
    async idle() {
      await Promise.race([enforcer?.idle(), untilDead()]);
    },
    expected,
    dump: () => world.dump(tableName, markSetName),
    async close() {
      life.dead = true;
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
