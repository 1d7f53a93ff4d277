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
import type { Forwarding } from '../status/forwarding.ts';
import { isDeviceName, namesOf } from './device-name.ts';
import { describeFailure, describeRoute, isGone } from './failure-text.ts';
import { findHindrances } from './hindrances.ts';
import { routeMetric } from './ip-lines.ts';
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
  readonly forwarding: () => Forwarding;
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
  /** -1: not even what was known at the start. */
  let applied = -1;
  let drift = 0;
  let failures = new Map<string, string>();
  /** What the last pass found right or made so, by uuid: what differs from it without a new want is drift. */
  let settled = new Set<string>();
  /** Tunnels that may carry something; undefined: the kernel could not be looked at yet. */
  let carrying: ReadonlySet<string> | undefined;
  let asked = false;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const pass = async (now: Wanted, isCheck: boolean): Promise<void> => {
    const [tableDrifted, present] = await Promise.all([isCheck ? table.hasDrifted() : false, links.look()]);
    const plan = planDevices(now.devices, present);
    const found = new Map([...now.unreadable, ...plan.obstacles]);
    /** Those that were carried out. */
    const carryOut = async (steps: readonly Step[]): Promise<readonly Step[]> => {
      const results = await links.run(steps.map(({ line }) => line));
      return steps.filter((step, index) => {
        const message = results[index];
        if (message === undefined) return true;
        if (step.purpose === 'carry-nothing' && !isGone(message)) throw new Error(`\`ip ${step.line}\`: ${message}`);
        const device = step.uuid === undefined ? undefined : now.devices.get(step.uuid);
        const reason = device && describeFailure(step, message, device);
        if (device && reason !== undefined && !found.has(device.uuid)) found.set(device.uuid, reason);
        return false;
      });
    };
    await carryOut(plan.first);
    const named = namedDevices(plan, now);
    const refusal = await table.put(tableText(named));
    carrying = new Set([...(carrying ?? []), ...plan.names.keys()]);
    if (refusal === undefined) {
      await tellShadowed(plan.then);
      const done = await carryOut(plan.then);
      if (isCheck) countDrift(done, tableDrifted);
    } else {
      const reason = `the router's kernel refuses the table of tunnels: ${refusal.split('\n')[0]}`;
      for (const uuid of plan.names.keys()) found.set(uuid, reason);
    }
    const hindrances = await findHindrances(parts, {
      devices: new Map([...named].filter(([, { uuid }]) => !found.has(uuid))),
      unseenLocals: plan.unseenLocals.filter(({ uuid }) => !found.has(uuid)),
    });
    for (const [uuid, reason] of hindrances) found.set(uuid, reason);
    removal.set(plan.dying);
    carrying = new Set(plan.names.keys());
    settled = new Set([...plan.names.keys()].filter((uuid) => !found.has(uuid)));
    prober.set([...settled].flatMap((uuid) => now.devices.get(uuid) ?? []));
    finish(now.token, found);
  };

  /** Which routes of others' go out of use by those that are about to be added. */
  const tellShadowed = async (steps: readonly Step[]): Promise<void> => {
    const subnets = steps.flatMap(({ purpose, subject }) => (purpose === 'route' && subject ? [subject] : []));
    for (const [subnet, route] of await links.taken(subnets)) {
      if (route.discards || route.metric <= routeMetric) continue;
      const told = { subnet, route: describeRoute(route) };
      logger.warn(told, 'a route of the router is out of use as long as a tunnel has its subnet');
    }
  };

  const countDrift = (done: readonly Step[], tableDrifted: boolean): void => {
    const steps = done.filter(({ uuid }) => uuid !== undefined && settled.has(uuid));
    drift += new Set(steps.map(({ uuid }) => uuid)).size + (tableDrifted ? 1 : 0);
    if (tableDrifted) logger.warn('another program changed the table of tunnels: it was put up anew');
    if (steps.length === 0) return;
    const mended = steps.slice(0, loggedLines).map(({ line }) => line);
    logger.warn({ changes: steps.length, mended }, 'another program changed tunnels: they are mended');
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
    finish(mayOthersCarry(now) ? applied : now.token, found);
  };

  const mayOthersCarry = ({ devices }: Wanted): boolean => {
    if (carrying !== undefined) return [...carrying].some((uuid) => !devices.has(uuid));
    const ours = links.names().filter(isDeviceName);
    const wantedNames = new Set(ours.length > 0 ? [...devices.keys()].flatMap(namesOf) : []);
    return ours.some((name) => !wantedNames.has(name));
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
      if (tunnels === undefined) {
        applied = 0;
        return;
      }
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

function namedDevices(plan: DevicePlan, { devices }: Wanted): Map<string, WantedDevice> {
  const named = new Map<string, WantedDevice>();
  for (const [uuid, name] of plan.names) {
    const device = devices.get(uuid);
    if (device) named.set(name, device);
  }
  return named;
}
