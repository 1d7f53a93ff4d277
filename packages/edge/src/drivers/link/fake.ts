/**
 * Links in memory that take the same commands as ip(8), for tests: enough of the kernel to tell a right order from a wrong
 * one. It knows who may not be made twice, what goes when a device goes down, and what needs an address beside it; the real
 * one is met in a guest (e2e/tunnel-kernel).
 */
import type { Link, LinkDriver, Route, TakenRoute } from './port.ts';

export interface FakeLinks extends LinkDriver {
  /** Commands of another program. Throws with what is wrong. */
  foreign(...lines: string[]): void;
  /** Kinds that this kernel lacks. */
  readonly lacking: Set<string>;
  /** Undefined: the command is carried out; else what is said instead. */
  refuse: (line: string) => string | undefined;
  /** What is thrown when anything is asked. */
  broken: string | undefined;
  /** How often it was asked for links. */
  readonly looks: number;
  /** Local addresses that no link lists. */
  readonly local: Set<string>;
  /** Commands that were carried out for the driver, in order. */
  readonly done: readonly string[];
  links(): readonly Link[];
}

interface Device {
  name: string;
  alias: string | undefined;
  kind: string | undefined;
  up: boolean;
  mtu: number;
  group: number;
  details: Record<string, unknown>;
  addresses: string[];
}

interface FakeRoute extends Route {
  /** Undefined: what it is for is discarded. */
  readonly device: string | undefined;
  readonly protocol: string;
}

class Refused extends Error {}

export function createFakeLinks(ownProtocol: number): FakeLinks {
  const devices = new Map<string, Device>();
  let routes: FakeRoute[] = [];
  const done: string[] = [];
  let looks = 0;
  const device = (name: string | undefined): Device => {
    const found = devices.get(name ?? '');
    if (found === undefined) throw new Refused(`Cannot find device "${name}"`);
    return found;
  };
  const remove = (name: string): void => {
    devices.delete(name);
    routes = routes.filter((route) => route.device !== name);
  };
  const assertFree = (kind: string | undefined, details: Record<string, unknown>, except?: string): void => {
    if (kind === 'dummy') return;
    const identity = identityOf(kind, details);
    for (const each of devices.values()) {
      if (each.name !== except && identityOf(each.kind, each.details) === identity) {
        throw new Refused(kind === 'geneve' ? 'Device or resource busy' : 'File exists');
      }
    }
  };
  const link = (verb: string, words: readonly string[]): void => {
    const options = optionsOf(words);
    const name = options.get('name') ?? options.get('dev');
    const kind = options.get('type');
    if (verb === 'delete') {
      const group = options.get('group');
      if (group === undefined) remove(device(name).name);
      else for (const each of [...devices.values()]) if (String(each.group) === group) remove(each.name);
      return;
    }
    if (verb === 'add') {
      if (name === undefined || kind === undefined) throw new Refused('what device?');
      if (world.lacking.has(kind)) throw new Refused('Unknown device type.');
      if (devices.has(name)) throw new Refused('File exists');
      const details = detailsOf(kind, options);
      assertFree(kind, details);
      const made = { name, alias: undefined, kind, up: false, mtu: Number(options.get('mtu')), addresses: [], details };
      devices.set(name, { ...made, group: Number(options.get('group') ?? 0) });
      return;
    }
    const found = device(name);
    if (kind !== undefined) {
      const details = detailsOf(kind, options);
      if (found.kind !== kind) throw new Refused('Operation not supported');
      if (kind === 'geneve') {
        const stays = !options.has('dstport') && details.id === found.details.id;
        if (!stays) throw new Refused('Changing VNI, Port, endpoint IP address family attributes are not supported.');
        details.port = found.details.port;
      }
      assertFree(kind, details, name);
      found.details = details;
    }
    if (options.has('mtu')) found.mtu = Number(options.get('mtu'));
    if (options.has('alias')) found.alias = options.get('alias') || undefined;
    if (options.has('group')) found.group = Number(options.get('group'));
    if (words.includes('up')) found.up = true;
    if (words.includes('down')) {
      found.up = false;
      found.addresses = found.addresses.filter((each) => !each.includes(':'));
      routes = routes.filter((route) => route.device !== found.name);
    }
  };
  const address = (verb: string, words: readonly string[]): void => {
    const found = device(optionsOf(words).get('dev'));
    const [text = ''] = words;
    if (found.addresses.includes(text) === (verb === 'add')) {
      throw new Refused(verb === 'add' ? 'File exists' : 'Cannot assign requested address');
    }
    found.addresses = verb === 'add' ? [...found.addresses, text] : found.addresses.filter((each) => each !== text);
  };
  const route = (verb: string, words: readonly string[]): void => {
    const options = optionsOf(words);
    const metric = Number(options.get('metric') ?? 0);
    if (words[0] === 'blackhole') {
      routes.push({ prefix: words[1] ?? '', via: undefined, device: undefined, protocol: 'boot', metric });
      return;
    }
    const found = device(options.get('dev'));
    const [prefix = ''] = words;
    const via = options.get('via');
    if (verb === 'del') {
      const isMeant = (each: FakeRoute): boolean =>
        each.prefix === prefix && each.device === found.name && each.via === via && each.metric === metric;
      const left = routes.filter((each) => !isMeant(each));
      if (left.length === routes.length) throw new Refused('No such process');
      routes = left;
      return;
    }
    if (!found.up) throw new Refused('Network is down');
    if (via !== undefined && !found.addresses.some((each) => besides(each) === via)) {
      throw new Refused('Nexthop has invalid gateway.');
    }
    if (routes.some((each) => each.prefix === prefix && each.metric === metric)) throw new Refused('File exists');
    routes.push({ prefix, via, device: found.name, protocol: options.get('proto') ?? 'boot', metric });
  };
  const execute = (line: string): void => {
    const [object, verb = '', ...words] = line.split(' ');
    if (object === 'link') link(verb, words);
    else if (object === 'address') address(verb, words);
    else if (object === 'route') route(verb, words);
    else throw new Refused(`Object "${object}" is unknown`);
  };

  const world: FakeLinks = {
    lacking: new Set(),
    local: new Set(),
    refuse: () => undefined,
    broken: undefined,
    done,
    links: () =>
      [...devices.values()].map((each) => ({
        ...each,
        routes: routes
          .filter(({ device: of, protocol }) => of === each.name && protocol === String(ownProtocol))
          .map(({ prefix, via, metric }) => ({ prefix, via, metric })),
      })),
    foreign(...lines) {
      for (const line of lines) execute(line);
    },
    get looks() {
      return looks;
    },
    async look() {
      looks += 1;
      if (world.broken !== undefined) throw new Error(world.broken);
      return world.links();
    },
    async isLocal(text) {
      return world.local.has(text) || [...devices.values()].some(({ addresses }) => addresses.includes(text));
    },
    async taken(prefixes) {
      if (world.broken !== undefined) throw new Error(world.broken);
      const found = new Map<string, TakenRoute>();
      for (const prefix of prefixes) {
        const [best] = routes.filter((each) => each.prefix === prefix).sort((a, b) => a.metric - b.metric);
        if (best === undefined) continue;
        const { device: name, via, protocol, metric } = best;
        found.set(
          prefix,
          name === undefined ? { discards: true } : { discards: false, device: name, via, protocol, metric },
        );
      }
      return found;
    },
    names: () => [...devices.keys()],
    async run(lines) {
      await new Promise((resolve) => setImmediate(resolve));
      if (world.broken !== undefined) throw new Error(world.broken);
      return lines.map((line) => {
        const refusal = world.refuse(line);
        if (refusal !== undefined) return refusal;
        try {
          execute(line);
          done.push(line);
          return undefined;
        } catch (error) {
          if (error instanceof Refused) return error.message;
          throw error;
        }
      });
    },
  };
  return world;
}

/** Words that stand in front of a value. */
const named = new Set(
  'name dev type mtu group alias addrgenmode local remote ttl hoplimit key ikey okey id dstport via proto metric encaplimit'.split(
    ' ',
  ),
);

function optionsOf(words: readonly string[]): Map<string, string> {
  const options = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (named.has(word)) options.set(word, words[++at] ?? '');
  }
  return options;
}

/** As ip(8) lists them. */
function detailsOf(kind: string, options: ReadonlyMap<string, string>): Record<string, unknown> {
  const octetsOf = (key: string | undefined): string | undefined =>
    key === undefined ? undefined : [24, 16, 8, 0].map((shift) => (Number(key) >>> shift) & 255).join('.');
  const [ikey, okey] = ['ikey', 'okey'].map((name) => octetsOf(options.get(name) ?? options.get('key')));
  const remote = options.get('remote');
  const hops = Number(options.get('ttl') ?? options.get('hoplimit'));
  if (kind === 'geneve')
    return { id: Number(options.get('id')), remote, ttl: hops, port: Number(options.get('dstport')) };
  return {
    local: options.get('local'),
    remote,
    ttl: hops,
    ...(ikey !== undefined && { ikey }),
    ...(okey !== undefined && { okey }),
    ...(options.get('encaplimit') === 'none' && { ip6_tnl_f_ign_encap_limit: true }),
  };
}

function identityOf(kind: string | undefined, details: Record<string, unknown>): string {
  return JSON.stringify([kind, details.id, details.port, details.local, details.remote, details.ikey]);
}

/** The other address of a pair. */
function besides(address: string): string {
  const [text = ''] = address.split('/');
  const [, head = '', last = ''] = /^(.*[.:])([0-9a-f]*)$/.exec(text) ?? [];
  const radix = text.includes(':') ? 16 : 10;
  return head + (Number.parseInt(last || '0', radix) ^ 1).toString(radix);
}
