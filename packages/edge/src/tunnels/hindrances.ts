/**
 * Finds what keeps a tunnel from carrying although its device is as it should be: an endpoint that is not the router's, a router
 * that does not forward, a subnet whose packets take another route. Changes nothing.
 */
import type { LinkDriver } from '../drivers/link/port.ts';
import type { Forwarding } from '../status/forwarding.ts';
import { describeDetour } from './failure-text.ts';
import type { WantedDevice } from './wanted-device.ts';

export interface HindranceSources {
  readonly links: LinkDriver;
  readonly forwarding: () => Forwarding;
}

export interface Standing {
  /** By the name of the device. */
  readonly devices: ReadonlyMap<string, WantedDevice>;
  /** Those of them whose local endpoint is on no link. */
  readonly unseenLocals: readonly WantedDevice[];
}

/** By uuid, a sentence. Throws when the kernel cannot be asked. */
export async function findHindrances(sources: HindranceSources, standing: Standing): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const tell = ({ uuid }: WantedDevice, reason: string): void => {
    if (!found.has(uuid)) found.set(uuid, reason);
  };
  await findStrangers(sources.links, standing.unseenLocals, tell);
  findUnforwarded(sources.forwarding(), [...standing.devices.values()], tell);
  await findDetours(sources.links, standing.devices, tell);
  return found;
}

type Tell = (device: WantedDevice, reason: string) => void;

/** An address may be the router's own and on no link. */
async function findStrangers(links: LinkDriver, devices: readonly WantedDevice[], tell: Tell): Promise<void> {
  const known = new Map<string, boolean>();
  for (const device of devices) {
    const { local } = device;
    const isLocal = known.get(local) ?? (await links.isLocal(local));
    known.set(local, isLocal);
    if (!isLocal) tell(device, `${local} is no address of this router: nothing arrives for the tunnel`);
  }
}

function findUnforwarded({ ipv4, ipv6 }: Forwarding, devices: readonly WantedDevice[], tell: Tell): void {
  if (ipv4 && ipv6) return;
  for (const device of devices) {
    const family = device.ips.find((prefix) => (prefix.family === 4 ? !ipv4 : !ipv6))?.family;
    if (family !== undefined) tell(device, `IPv${family} forwarding is switched off on this router`);
  }
}

async function findDetours(links: LinkDriver, devices: ReadonlyMap<string, WantedDevice>, tell: Tell): Promise<void> {
  const taken = await links.taken([...devices.values()].flatMap(({ routes }) => routes.map(({ prefix }) => prefix)));
  for (const [name, device] of devices) {
    for (const { prefix } of device.routes) {
      const route = taken.get(prefix);
      if (route === undefined || (!route.discards && route.device === name)) continue;
      tell(device, describeDetour(prefix, route));
    }
  }
}
