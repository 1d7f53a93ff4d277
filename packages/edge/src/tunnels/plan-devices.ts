/**
 * Decides what has to be done for the kernel's devices to be those that are wanted: pure, what is and what should be in,
 * commands out. A device that is right gets none. Must never name a device that is not ours.
 */
import { geneveUdpPort } from '@levee/core/tunnel/tunnel.ts';
import type { Link, Route } from '../drivers/link/port.ts';
import { deviceGroup, isDeviceName, namesOf, ownerOf, unnamed } from './device-name.ts';
import {
  addressLine,
  aliasLine,
  changeLine,
  createLines,
  deleteLine,
  downLine,
  groupLine,
  mtuLine,
  routeLine,
  timeToLive,
  upLine,
} from './ip-lines.ts';
import { identityOf, type SeenTunnel, tunnelOf } from './seen-device.ts';
import type { WantedDevice } from './wanted-device.ts';

export type Purpose = 'create' | 'change' | 'up' | 'address' | 'route' | 'unroute' | 'carry-nothing' | 'make-room';

export interface Step {
  /** The tunnel for whose sake; undefined: of a device whose tunnel is wanted no more. */
  readonly uuid: string | undefined;
  readonly purpose: Purpose;
  readonly line: string;
  /** The subnet of a route. */
  readonly subject?: string;
}

export interface DevicePlan {
  /** Of each tunnel that has a device, or gets one. */
  readonly names: ReadonlyMap<string, string>;
  /** To be run first, and by themselves: ip(8) keeps the numbers of devices that it has met. */
  readonly first: readonly Step[];
  readonly then: readonly Step[];
  /** Devices of ours without a tunnel, which carry nothing once `first` has run. */
  readonly dying: readonly string[];
  /** Tunnels for which nothing can be done, or that cannot work, and why. */
  readonly obstacles: ReadonlyMap<string, string>;
  /** Tunnels whose local endpoint is on no link. */
  readonly unseenLocals: readonly WantedDevice[];
}

export function planDevices(wanted: ReadonlyMap<string, WantedDevice>, links: readonly Link[]): DevicePlan {
  const { own, rest } = sortOut(wanted, links);
  const names = new Map<string, string>();
  const obstacles = new Map<string, string>();
  const ours = new Set([...own.values(), ...rest]);
  const elsewhere = addressesOf(links.filter((link) => !ours.has(link)));
  const present = addressesOf(links);
  const takenNames = new Set(links.map(({ name }) => name));
  const holders = holdersOf([...own.values(), ...rest]);
  const first: Step[] = [];
  const then: Step[] = [];
  const gone = new Set<string>();

  // Who has to move is known before anybody moves.
  const replaced = new Set<string>();
  for (const [uuid, device] of wanted) {
    const link = own.get(uuid);
    if (link !== undefined && (needsAnother(link, device) || moves(link, device, holders))) replaced.add(uuid);
    const holder = holders.get(identityOf(device));
    if (holder === undefined || holder === link?.name) continue;
    const other = [...own].find(([, each]) => each.name === holder)?.[0];
    const itsOwn = other === undefined ? undefined : wanted.get(other);
    if (other === undefined) gone.add(holder);
    else if (itsOwn !== undefined && identityOf(itsOwn) !== identityOf(device)) replaced.add(other);
  }

  for (const [uuid, device] of wanted) {
    const link = own.get(uuid);
    const clash = device.addresses.map((address) => address.split('/')[0] ?? '').find((each) => elsewhere.has(each));
    if (clash !== undefined) obstacles.set(uuid, `${clash} is an address of ${elsewhere.get(clash)} already`);
    if (link === undefined && clash !== undefined) continue;
    const name = link?.name ?? freeName(uuid, takenNames);
    if (name === undefined) {
      obstacles.set(uuid, 'every name that its device may have is taken by a device that is not ours');
      continue;
    }
    takenNames.add(name);
    names.set(uuid, name);
    if (link !== undefined && !replaced.has(uuid)) {
      then.push(...mend(link, device));
      continue;
    }
    if (link !== undefined) first.push({ uuid, purpose: 'make-room', line: deleteLine(name) });
    then.push(...make(name, device));
  }

  for (const link of rest) {
    const { name } = link;
    if (gone.has(name)) first.push({ uuid: undefined, purpose: 'make-room', line: deleteLine(name) });
    else first.push(...silence(link));
  }
  return {
    names,
    first,
    then,
    dying: rest.flatMap(({ name }) => (gone.has(name) ? [] : [name])),
    obstacles,
    unseenLocals: [...wanted.values()].filter(({ local, uuid }) => names.has(uuid) && !present.has(local)),
  };
}

interface Sorted {
  /** One device a wanted tunnel. */
  readonly own: ReadonlyMap<string, Link>;
  /** Devices of ours that no wanted tunnel has. */
  readonly rest: readonly Link[];
}

function sortOut(wanted: ReadonlyMap<string, WantedDevice>, links: readonly Link[]): Sorted {
  const own = new Map<string, Link>();
  const rest: Link[] = [];
  let byName: Map<string, string> | undefined;
  for (const link of links) {
    if (!isDeviceName(link.name)) continue;
    let owner = ownerOf(link);
    if (owner === undefined || owner === unnamed) {
      byName ??= new Map([...wanted.keys()].flatMap((uuid) => namesOf(uuid).map((name) => [name, uuid])));
      const named = byName.get(link.name) ?? unnamed;
      if (owner === undefined && !hasEndsOf(link, wanted.get(named))) continue;
      owner = named;
    }
    if (wanted.has(owner) && !own.has(owner)) own.set(owner, link);
    else rest.push(link);
  }
  return { own, rest };
}

/** Without any mark of ours, a device by the tunnel's name that ends where the tunnel does has only lost them. */
function hasEndsOf(link: Link, device: WantedDevice | undefined): boolean {
  const seen = tunnelOf(link);
  return seen !== undefined && device !== undefined && identityOf(seen) === identityOf(device);
}

function freeName(uuid: string, taken: ReadonlySet<string>): string | undefined {
  return namesOf(uuid).find((name) => !taken.has(name));
}

/** address → link */
function addressesOf(links: readonly Link[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name, addresses } of links) for (const each of addresses) found.set(each.split('/')[0] ?? each, name);
  return found;
}

/** identity → link */
function holdersOf(links: readonly Link[]): Map<string, string> {
  const holders = new Map<string, string>();
  for (const link of links) {
    const seen = tunnelOf(link);
    if (seen) holders.set(identityOf(seen), link.name);
  }
  return holders;
}

/** What no `ip link change` can turn into the wanted one, or only some kernels'. */
function needsAnother(link: Link, device: WantedDevice): boolean {
  const seen = tunnelOf(link);
  return (
    seen === undefined ||
    seen.kind !== device.kind ||
    seen.number !== device.number ||
    seen.keysDiffer ||
    seen.encapsulationLimit ||
    (seen.port !== undefined && seen.port !== geneveUdpPort) ||
    (seen.kind === 'geneve' && !sameFamily(seen.remote, device.remote))
  );
}

/** Whether it goes where another device of ours is now: then no order of changes is sure to work. */
function moves(link: Link, device: WantedDevice, holders: ReadonlyMap<string, string>): boolean {
  const holder = holders.get(identityOf(device));
  return holder !== undefined && holder !== link.name;
}

function sameFamily(a: string, b: string): boolean {
  return a.includes(':') === b.includes(':');
}

function make(name: string, device: WantedDevice): Step[] {
  const { uuid } = device;
  return [
    ...createLines(name, device).map((line): Step => ({ uuid, purpose: 'create', line })),
    ...device.addresses.map((each): Step => ({ uuid, purpose: 'address', line: addressLine('add', name, each) })),
    { uuid, purpose: 'up', line: upLine(name) },
    ...device.routes.map((route) => routeStep(uuid, 'add', name, route)),
  ];
}

function mend(link: Link, device: WantedDevice): Step[] {
  const { name } = link;
  const { uuid } = device;
  const steps: Step[] = [];
  const add = (purpose: Purpose, line: string) => steps.push({ uuid, purpose, line });
  if (needsChange(tunnelOf(link), device)) add('change', changeLine(name, device));
  else if (link.mtu !== device.sizes.mtu) add('change', mtuLine(name, device));
  if (link.alias !== uuid) add('change', aliasLine(name, device));
  if (link.group !== deviceGroup) add('change', groupLine(name));
  const extra = link.addresses.filter((each) => !device.addresses.includes(each));
  for (const each of device.addresses) {
    if (!link.addresses.includes(each)) add('address', addressLine('add', name, each));
  }
  if (!link.up) add('up', upLine(name));
  for (const route of withoutThose(link.routes, device.routes)) steps.push(routeStep(uuid, 'del', name, route));
  for (const route of withoutThose(device.routes, link.routes)) steps.push(routeStep(uuid, 'add', name, route));
  // Last: a route by way of the customer's address needs an address of ours beside it.
  for (const each of extra) add('address', addressLine('del', name, each));
  return steps;
}

function needsChange(seen: SeenTunnel | undefined, device: WantedDevice): boolean {
  return (
    seen?.remote !== device.remote ||
    seen.timeToLive !== timeToLive ||
    (device.kind !== 'geneve' && seen.local !== device.local)
  );
}

function withoutThose(routes: readonly Route[], others: readonly Route[]): readonly Route[] {
  const textOf = ({ prefix, via, metric }: Route): string => `${prefix} ${via ?? ''} ${metric}`;
  const known = new Set(others.map(textOf));
  return routes.filter((route) => !known.has(textOf(route)));
}

function routeStep(uuid: string, verb: 'add' | 'del', name: string, route: Route): Step {
  return {
    uuid,
    purpose: verb === 'add' ? 'route' : 'unroute',
    line: routeLine(verb, name, route),
    subject: route.prefix,
  };
}

/**
 * A device that is down takes no packet, has no route and no IPv6 address; an IPv4 address of it would still be answered
 * for.
 */
function silence({ name, up, addresses }: Link): Step[] {
  const step = (line: string): Step => ({ uuid: undefined, purpose: 'carry-nothing', line });
  const remove = (ipv6: boolean) =>
    addresses.filter((each) => each.includes(':') === ipv6).map((each) => step(addressLine('del', name, each)));
  return [...remove(true), ...(up ? [step(downLine(name))] : []), ...remove(false)];
}
