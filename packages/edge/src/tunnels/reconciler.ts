/**
 * Holds the router's tunnels to what is wanted: looks at the kernel, has the differences planned, carries them out, and
 * looks again every few seconds. Owns the order: the table before a device that it is about, silence before the table
 * goes. Never patches from memory: each pass begins with what the kernel has.
 */
import type { AgentFailure, AgentTunnel } from '@levee/contract/agent.ts';
import type { Logger } from 'pino';
import type { LinkDriver } from '../drivers/link/port.ts';
import type { NftDriver } from '../drivers/nft/port.ts';
import { createSerial } from '../drivers/nft/serial.ts';
import { describeFailure } from './failure-text.ts';
import { type DevicePlan, planDevices, type Step } from './plan-devices.ts';
import type { TunnelReconciler, TunnelReconcilerEvents } from './port.ts';
import type { Prober } from './probe/prober.ts';
import { createRemoval } from './removal.ts';
import { createTableKeeper } from './table-keeper.ts';
import { tableText } from './tunnel-table.ts';
import { readTunnel, type WantedDevice } from './wanted-device.ts';

export interface TunnelParts {
  readonly links: LinkDriver;
  /** Its transactions may take their time: another than the one for rules. */
  readonly nft: NftDriver;
  readonly prober: Prober;
  readonly capabilities: () => readonly string[];
  /** Between two looks at what the kernel has. */
  readonly checkMilliseconds: number;
  /** After what could not be asked or done at all. */
  readonly retryMilliseconds: number;
  readonly logger: Logger;
}

/** Of what is mended at once. */
const loggedLines = 10;

interface Wanted {
  readonly devices: ReadonlyMap<string, WantedDevice>;
  readonly unreadable: ReadonlyMap<string, string>;
  readonly token: number;
}

export function createTunnelReconciler(parts: TunnelParts, events: TunnelReconcilerEvents): TunnelReconciler {
  const { links, nft, prober, logger } = parts;
  const table = createTableKeeper(nft);
  /** Whoever looks at links and changes them by what was seen. */
  const lane = createSerial();
  const removal = createRemoval({
    links,
    alone: (work) => lane.run(work),
    retryMilliseconds: parts.retryMilliseconds,
    failed: (reason) => logger.warn({ reason }, 'devices of former tunnels stay for now'),
  });
  let wanted: Wanted | undefined;
  const capabilities = parts.capabilities();
  let applied = 0;
  let drift = 0;
  let failures = new Map<string, string>();
  /** What the last pass found right or made so, by uuid: what differs from it without a new want is drift. */
  let settled = new Set<string>();
  /** Tunnels that may carry something, as far as this run knows. */
  let carrying = new Set<string>();
  let asked = false;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const pass = async (now: Wanted, isCheck: boolean): Promise<void> => {
    const [tableDrifted, present] = await Promise.all([isCheck ? table.hasDrifted() : false, links.look()]);
    const plan = planDevices(now.devices, present);
    const found = new Map([...now.unreadable, ...plan.obstacles]);
    const carryOut = async (steps: readonly Step[]): Promise<void> => {
      const results = await links.run(steps.map(({ line }) => line));
      steps.forEach((step, index) => {
        const message = results[index];
        if (message === undefined || isHarmless(step, message)) return;
        if (step.purpose === 'carry-nothing') throw new Error(`\`ip ${step.line}\`: ${message}`);
        const device = step.uuid === undefined ? undefined : now.devices.get(step.uuid);
        if (device !== undefined && !found.has(device.uuid)) {
          found.set(device.uuid, describeFailure(step, message, device));
        }
      });
    };
    await carryOut(plan.first);
    const refusal = await table.put(tableText(namedDevices(plan, now)));
    for (const uuid of plan.names.keys()) {
      carrying.add(uuid);
      if (refusal !== undefined)
        found.set(uuid, `the router's kernel refuses the table of tunnels: ${refusal.split('\n')[0]}`);
    }
    if (refusal === undefined) await carryOut(plan.then);
    if (isCheck) countDrift(plan, tableDrifted);
    await addStrangers(plan.unseenLocals, found);
    removal.set(plan.dying);
    carrying = new Set(plan.names.keys());
    settled = new Set([...plan.names.keys()].filter((uuid) => !found.has(uuid)));
    prober.set([...settled].flatMap((uuid) => now.devices.get(uuid) ?? []));
    finish(now.token, found);
  };

  /** An address may be the router's own and on no link. */
  const addStrangers = async (devices: readonly WantedDevice[], found: Map<string, string>): Promise<void> => {
    const known = new Map<string, boolean>();
    for (const { uuid, local } of devices) {
      if (found.has(uuid)) continue;
      const isLocal = known.get(local) ?? (await links.isLocal(local));
      known.set(local, isLocal);
      if (!isLocal) found.set(uuid, `${local} is no address of this router: nothing arrives for the tunnel`);
    }
  };

  const countDrift = (plan: DevicePlan, tableDrifted: boolean): void => {
    const steps = plan.then.filter(({ uuid }) => uuid !== undefined && settled.has(uuid));
    drift += new Set(steps.map(({ uuid }) => uuid)).size + (tableDrifted ? 1 : 0);
    if (steps.length === 0 && !tableDrifted) return;
    const mended = steps.slice(0, loggedLines).map(({ line }) => line);
    logger.warn(
      { table: tableDrifted, changes: steps.length, mended },
      'another program changed tunnels: they are mended',
    );
  };

  const finish = (token: number, found: Map<string, string>): void => {
    const same = found.size === failures.size && [...found].every(([uuid, reason]) => failures.get(uuid) === reason);
    const risen = token > applied;
    for (const [uuid, reason] of found) {
      if (failures.get(uuid) !== reason) logger.warn({ tunnel: uuid, reason }, 'a tunnel fails');
    }
    failures = found;
    applied = Math.max(applied, token);
    if (risen || !same) events.changed();
  };

  /**
   * Nothing could be looked at or changed: that is every tunnel's failure. While one that was removed may carry something,
   * nothing is acknowledged.
   */
  const giveUp = (now: Wanted, reason: string): void => {
    const found = new Map(now.unreadable);
    for (const uuid of now.devices.keys()) found.set(uuid, reason);
    const owes = [...carrying].some((uuid) => !now.devices.has(uuid));
    finish(owes ? applied : now.token, found);
  };

  /** Asked for again before it has begun, a pass is made once. */
  const ask = (isCheck: boolean): Promise<void> => {
    if (asked && !isCheck) return lane.idle();
    asked ||= !isCheck;
    return lane.run(async () => {
      if (!isCheck) asked = false;
      clearTimeout(timer);
      const now = wanted;
      if (now === undefined || stopped) return;
      let pause: number | undefined = parts.checkMilliseconds;
      try {
        await pass(now, isCheck);
        // A router without tunnels is left alone.
        if (now.devices.size === 0) pause = undefined;
      } catch (error) {
        logger.error({ err: error }, 'the tunnels could not be brought to what is wanted');
        pause = parts.retryMilliseconds;
        giveUp(now, (error as Error).message);
      }
      if (!stopped && pause !== undefined) timer = setTimeout(() => void ask(true), pause);
    });
  };

  return {
    async start(tunnels) {
      if (tunnels === undefined) return;
      wanted = readAll(tunnels, 0);
      await ask(false);
    },
    want(tunnels, token) {
      wanted = readAll(tunnels, token);
      void ask(false);
    },
    get applied() {
      return applied;
    },
    failures: (): AgentFailure[] => [...failures].map(([uuid, reason]) => ({ uuid, reason })),
    capabilities,
    probes: () => prober.take(),
    status: () => ({ devices: settled.size, deleting: removal.count, drift, ...prober.status() }),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      prober.stop();
      removal.stop();
      await lane.idle();
      await nft.close();
    },
  };
}

function readAll(tunnels: ReadonlyMap<string, AgentTunnel>, token: number): Wanted {
  const devices = new Map<string, WantedDevice>();
  const unreadable = new Map<string, string>();
  for (const [uuid, tunnel] of tunnels) {
    const read = readTunnel(tunnel);
    if (read.ok) devices.set(uuid, read.device);
    else unreadable.set(uuid, read.reason);
  }
  return { devices, unreadable, token };
}

/** What is to be gone and was gone before us. */
function isHarmless({ purpose }: Step, message: string): boolean {
  return (
    (purpose === 'carry-nothing' || purpose === 'make-room') &&
    /Cannot find device|does not exist|Cannot assign requested address|No such device/.test(message)
  );
}

function namedDevices(plan: DevicePlan, { devices }: Wanted): Map<string, WantedDevice> {
  const named = new Map<string, WantedDevice>();
  for (const [uuid, name] of plan.names) {
    const device = devices.get(uuid);
    if (device) named.set(name, device);
  }
  return named;
}
