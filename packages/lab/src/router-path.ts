/**
 * attacker — router — customer: three namespaces, two wires, addresses of both families, forwarding, and static
 * neighbours, so that nothing but the experiment's own packets runs on the wires. Owns the addressing of this path.
 * Must never load a rule: what the router filters is the experiment's matter.
 */
import { Namespace } from './namespace.ts';

/** Hardware addresses are fixed, so that frames can be built before the devices exist. */
export const hardwareAddress = {
  attacker: '02:00:00:00:0a:01',
  routerOutside: '02:00:00:00:0a:02',
  routerInside: '02:00:00:00:0b:01',
  customer: '02:00:00:00:0b:02',
} as const;

/** The router's own addresses, from which it answers what it rejects. */
export const routerAddress = {
  outside4: '192.0.2.1',
  outside6: 'fd00:a::1',
  inside4: '192.0.2.5',
  inside6: 'fd00:b::1',
};
export const customerAddress = { inside4: '192.0.2.6', inside6: 'fd00:b::2' };

export const device = {
  attacker: 'uplink',
  routerOutside: 'outside',
  routerInside: 'inside',
  customer: 'uplink',
} as const;

export interface RouterPathOptions {
  /** Routed to the customer; everything else goes back to the attacker's side, where the senders live. */
  protectedPrefixes: readonly string[];
  /** Largest IP packet on both wires. */
  mtu?: number;
  /** Told apart from other paths of the same process by its namespaces' names. */
  label?: string;
}

export class RouterPath {
  readonly attacker: Namespace;
  readonly router: Namespace;
  readonly customer: Namespace;

  constructor(options: RouterPathOptions) {
    const label = options.label ? `${options.label}-` : '';
    const made: Namespace[] = [];
    const make = (name: string): Namespace => {
      const namespace = new Namespace(`${label}${name}`);
      made.push(namespace);
      return namespace;
    };
    try {
      this.attacker = make('attacker');
      this.router = make('router');
      this.customer = make('customer');
      this.wire(options.protectedPrefixes, options.mtu ?? 1500);
    } catch (error) {
      for (const namespace of made) namespace.remove();
      throw error;
    }
  }

  remove(): void {
    this.attacker.remove();
    this.router.remove();
    this.customer.remove();
  }

  [Symbol.dispose](): void {
    this.remove();
  }

  private wire(prefixes: readonly string[], mtu: number): void {
    const { attacker, router, customer } = this;
    const quiet = {
      'ipv6/conf/all/accept_ra': 0,
      'ipv6/conf/default/accept_ra': 0,
      'ipv6/conf/default/router_solicitations': 0,
      'ipv6/conf/default/addr_gen_mode': 1,
      'ipv6/conf/default/accept_dad': 0,
      'ipv4/conf/all/rp_filter': 0,
      'ipv4/conf/default/rp_filter': 0,
      'ipv4/conf/all/send_redirects': 0,
      'ipv4/conf/default/send_redirects': 0,
    };
    for (const namespace of [attacker, router, customer]) namespace.sysctl(quiet);
    router.sysctl({
      'ipv4/ip_forward': 1,
      'ipv6/conf/all/forwarding': 1,
      // The router must answer every rejected packet, or a missing answer would prove nothing.
      'ipv4/icmp_ratelimit': 0,
      'ipv4/icmp_msgs_per_sec': 100_000_000,
      'ipv4/icmp_msgs_burst': 100_000_000,
      'ipv6/icmp/ratelimit': 0,
    });

    const cable = (
      near: string,
      nearAddress: string,
      far: string,
      farNamespace: Namespace,
      farAddress: string,
    ): string =>
      `link add ${near} address ${nearAddress} mtu ${mtu} type veth peer name ${far} address ${farAddress} mtu ${mtu} netns ${farNamespace.name}`;
    router.ip([
      cable(device.routerOutside, hardwareAddress.routerOutside, device.attacker, attacker, hardwareAddress.attacker),
      cable(device.routerInside, hardwareAddress.routerInside, device.customer, customer, hardwareAddress.customer),
      `addr add ${routerAddress.outside4}/30 dev outside`,
      `addr add ${routerAddress.outside6}/64 dev outside nodad`,
      `addr add ${routerAddress.inside4}/30 dev inside`,
      `addr add ${routerAddress.inside6}/64 dev inside nodad`,
      'link set outside up',
      'link set inside up',
      ...neighbours('outside', hardwareAddress.attacker, '192.0.2.2', 'fd00:a::2'),
      ...neighbours('inside', hardwareAddress.customer, customerAddress.inside4, customerAddress.inside6),
      'route add default via 192.0.2.2 dev outside',
      'route add ::/0 via fd00:a::2 dev outside',
      ...prefixes.map((prefix) =>
        prefix.includes(':')
          ? `route add ${prefix} via ${customerAddress.inside6} dev inside`
          : `route add ${prefix} via ${customerAddress.inside4} dev inside`,
      ),
    ]);
    attacker.ip([
      'addr add 192.0.2.2/30 dev uplink',
      'addr add fd00:a::2/64 dev uplink nodad',
      'link set uplink up',
      ...neighbours('uplink', hardwareAddress.routerOutside, routerAddress.outside4, routerAddress.outside6),
      `route add default via ${routerAddress.outside4}`,
      `route add ::/0 via ${routerAddress.outside6}`,
    ]);
    customer.ip([
      `addr add ${customerAddress.inside4}/30 dev uplink`,
      `addr add ${customerAddress.inside6}/64 dev uplink nodad`,
      'link set uplink up',
      ...neighbours('uplink', hardwareAddress.routerInside, routerAddress.inside4, routerAddress.inside6),
      `route add default via ${routerAddress.inside4}`,
      `route add ::/0 via ${routerAddress.inside6}`,
    ]);
  }
}

/** Permanent entries: no ARP and no neighbour discovery is ever sent. */
function neighbours(name: string, hardware: string, v4: string, v6: string): string[] {
  return [
    `neigh replace ${v4} lladdr ${hardware} dev ${name} nud permanent`,
    `neigh replace ${v6} lladdr ${hardware} dev ${name} nud permanent`,
  ];
}
