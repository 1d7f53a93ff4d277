/** Reads what `ip -json` lists. Owns the names of its fields; what it does not know it leaves aside. */
import type { Link, Route, TakenRoute } from './port.ts';

export type IpRecord = Readonly<Record<string, unknown>>;

/** `links`: of `ip -details -json address show`; `routes`: of `ip -json route show table all`. */
export function readLinks(links: readonly IpRecord[], routes: readonly IpRecord[]): readonly Link[] {
  const byDevice = new Map<string, Route[]>();
  for (const record of routes) {
    const device = text(record.dev);
    const prefix = routePrefix(text(record.dst));
    // The main table is the one that is not named.
    if (device === undefined || prefix === undefined || record.table !== undefined) continue;
    const known = byDevice.get(device);
    const route = { prefix, via: text(record.gateway), metric: metricOf(record) };
    if (known) known.push(route);
    else byDevice.set(device, [route]);
  }
  return links.flatMap((record) => {
    const name = text(record.ifname);
    return name === undefined ? [] : [linkOf(name, record, byDevice.get(name) ?? [])];
  });
}

/** Of `ip -json -details route get fibmatch`: the route, with the subnet that it is for. Undefined: not of the main table. */
export function readTaken(record: IpRecord): { readonly prefix: string; readonly route: TakenRoute } | undefined {
  const prefix = routePrefix(text(record.dst));
  if (prefix === undefined || (record.table !== undefined && record.table !== 'main')) return undefined;
  const [hop = record] = Array.isArray(record.nexthops) ? (record.nexthops as IpRecord[]) : [];
  const [device, via, protocol] = [text(hop.dev), text(hop.gateway), text(record.protocol) ?? 'boot'];
  return { prefix, route: { discards: false, device, via, protocol, metric: metricOf(record) } };
}

function linkOf(name: string, record: IpRecord, routes: readonly Route[]): Link {
  const info = (record.linkinfo ?? {}) as IpRecord;
  const flags = Array.isArray(record.flags) ? record.flags : [];
  const addresses = Array.isArray(record.addr_info) ? (record.addr_info as IpRecord[]) : [];
  return {
    name,
    alias: text(record.ifalias),
    kind: text(info.info_kind),
    up: flags.includes('UP'),
    mtu: Number(record.mtu),
    group: record.group === 'default' ? 0 : Number(record.group),
    details: (info.info_data ?? {}) as IpRecord,
    addresses: addresses.flatMap((each) => {
      const local = text(each.local);
      return local === undefined || each.scope === 'link' ? [] : [`${local}/${each.prefixlen}`];
    }),
    routes,
  };
}

/** IPv4's 0 is not listed. */
function metricOf({ metric }: IpRecord): number {
  return typeof metric === 'number' ? metric : 0;
}

/** A single address is listed without its length. */
function routePrefix(destination: string | undefined): string | undefined {
  if (destination === undefined || destination.includes('/')) return destination;
  if (destination === 'default') return undefined;
  return `${destination}/${destination.includes(':') ? 128 : 32}`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
