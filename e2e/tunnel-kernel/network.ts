/**
 * The network that tunnels are tried in: a visitor, the internet's one router in between, the router with the edge, two
 * customers. Owns names, addresses and the customers' ends. Made inside a guest; the test's own process is the visitor.
 *
 *     visitor — internet — router (192.0.2.1, 2001:db8:ffff::1 on lo)
 *                  ├────── first customer (198.51.100.9, .19, 2001:db8:900::9)
 *                  └────── second customer (198.51.100.10, .20, 2001:db8:900::10)
 */
import { spawn } from 'node:child_process';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { endNumbers, innerAddresses, usualPools } from '@levee/core/tunnel/allocation.ts';
import { type ConfigTunnel, deviceName } from '@levee/core/tunnel/config/config-tunnel.ts';
import { writeConfig } from '@levee/core/tunnel/config/write-config.ts';
import { sizesOf } from '@levee/core/tunnel/mtu.ts';
import { Namespace } from '@levee/lab/namespace.ts';

export const visitorAddresses = ['198.18.0.2', '2001:db8:800::2'] as const;
export const routerAddresses = { 4: '192.0.2.1', 6: '2001:db8:ffff::1' } as const;
/** As its operator calls it. */
export const guestRouter = { location: 'fra1', router: 'edge-fra1' } as const;

export interface Network {
  readonly visitor: Namespace;
  readonly router: Namespace;
  readonly customers: readonly [Namespace, Namespace];
}

/** What the kernel would do on its own: addresses, advertisements, checks of either. */
const quiet = {
  'ipv6/conf/all/accept_ra': 0,
  'ipv6/conf/default/accept_ra': 0,
  'ipv6/conf/all/accept_dad': 0,
  'ipv6/conf/default/accept_dad': 0,
};
const forwarding = { 'ipv4/ip_forward': 1, 'ipv6/conf/all/forwarding': 1 };

/** Path MTU discovery must not be what makes large transfers work. */
const withoutIcmpErrors = `table inet blocked {
  chain in {
    type filter hook input priority 0; policy accept;
    icmp type destination-unreachable drop
    icmpv6 type packet-too-big drop
  }
}
`;

export function buildNetwork(): Network {
  const [visitor, internet, router, first, second] = ['visitor', 'internet', 'router', 'first', 'second'].map(
    (label) => new Namespace(label),
  ) as [Namespace, Namespace, Namespace, Namespace, Namespace];
  for (const namespace of [visitor, internet, router, first, second]) namespace.sysctl(quiet);
  for (const namespace of [internet, router]) namespace.sysctl(forwarding);
  // Strict, as many machines have it: what comes out of a tunnel has to pass it.
  router.sysctl({ 'ipv4/conf/all/rp_filter': 1, 'ipv4/conf/default/rp_filter': 1 });

  const ends: [Namespace, number, readonly string[]][] = [
    [visitor, 0, ['198.18.0.2/24', '2001:db8:800::2/64']],
    [router, 1, []],
    [first, 2, ['198.51.100.9/32', '198.51.100.19/32', '2001:db8:900::9/128']],
    [second, 3, ['198.51.100.10/32', '198.51.100.20/32', '2001:db8:900::10/128']],
  ];
  internet.ip(
    ends.flatMap(([namespace, n]) => [
      `link add to${n} type veth peer name uplink netns ${namespace.name}`,
      n === 0 ? 'address add 198.18.0.1/24 dev to0' : `address add 100.64.${n}.1/30 dev to${n}`,
      n === 0 ? 'address add 2001:db8:800::1/64 dev to0 nodad' : `address add 2001:db8:${n}::1/64 dev to${n} nodad`,
      `link set to${n} up`,
    ]),
  );
  for (const [namespace, n, addresses] of ends) {
    const near = n === 0 ? ['198.18.0.1', '2001:db8:800::1'] : [`100.64.${n}.1`, `2001:db8:${n}::1`];
    namespace.ip([
      ...(n === 0
        ? []
        : [`address add 100.64.${n}.2/30 dev uplink`, `address add 2001:db8:${n}::2/64 dev uplink nodad`]),
      ...addresses.map(
        (each) => `address add ${each} dev ${n === 0 ? 'uplink' : 'lo'}${each.includes(':') ? ' nodad' : ''}`,
      ),
      'link set uplink up',
      // What a machine sends of its own accord has the address that its tunnels end at.
      `route add default via ${near[0]}${n > 1 ? ` src ${addresses[0]?.split('/')[0]}` : ''}`,
      `route add ::/0 via ${near[1]}${n > 1 ? ` src ${addresses.at(-1)?.split('/')[0]}` : ''}`,
    ]);
  }
  // Not the address of the way out: packets have to carry it all the same.
  router.ip([`address add ${routerAddresses[4]}/32 dev lo`, `address add ${routerAddresses[6]}/128 dev lo nodad`]);
  internet.ip([
    `route add ${routerAddresses[4]}/32 via 100.64.1.2`,
    `route add ${routerAddresses[6]}/128 via 2001:db8:1::2`,
    'route add 203.0.113.0/24 via 100.64.1.2',
    'route add 2001:db8:7000::/36 via 2001:db8:1::2',
    ...ends
      .slice(2)
      .flatMap(([, n, addresses]) =>
        addresses.map((each) => `route add ${each} via ${each.includes(':') ? `2001:db8:${n}::2` : `100.64.${n}.2`}`),
      ),
  ]);
  for (const namespace of [visitor, first, second]) namespace.loadNft(withoutIcmpErrors);
  return { visitor, router, customers: [first, second] };
}

/** A machine with these addresses behind the customer's, on an Ethernet of 1500 octets, that knows of no tunnel. */
export function hostBehind(customer: Namespace, addresses: readonly string[]): Namespace {
  const host = new Namespace('behind');
  host.sysctl(quiet);
  customer.sysctl(forwarding);
  customer.ip([
    `link add inside type veth peer name uplink netns ${host.name}`,
    'address add 10.1.1.1/30 dev inside',
    'address add fd00:1::1/64 dev inside nodad',
    'link set inside up',
  ]);
  host.ip([
    'address add 10.1.1.2/30 dev uplink',
    'address add fd00:1::2/64 dev uplink nodad',
    ...addresses.map((each) => `address add ${each} dev lo${each.includes(':') ? ' nodad' : ''}`),
    'link set uplink up',
    ...addresses.map((each) =>
      each.includes(':') ? `route add ::/0 via fd00:1::1 src ${each}` : `route add default via 10.1.1.1 src ${each}`,
    ),
  ]);
  customer.ip(addresses.map((each) => `route add ${each} via ${each.includes(':') ? 'fd00:1::2' : '10.1.1.2'}`));
  host.loadNft(withoutIcmpErrors);
  return host;
}

/** A tunnel as the control plane tells it. `n`: its number, and what its subnets and uuid are made of. */
export function tunnelOf(
  n: number,
  type: 'GRE' | 'Geneve',
  endpoint: string,
  more: Partial<AgentTunnel> = {},
): AgentTunnel {
  const { innerIpv4, innerIpv6 } = endNumbers(usualPools, n);
  return {
    uuid: uuidOf(n),
    sequence: n,
    type,
    ips: [`203.0.113.${16 * n}/28`, `2001:db8:7${n.toString(16).padStart(3, '0')}::/64`],
    endpoint,
    local_endpoint: routerAddresses[endpoint.includes(':') ? 6 : 4],
    number: n,
    inner_ipv4: formatPrefix(innerIpv4),
    inner_ipv6: formatPrefix(innerIpv6),
    ...more,
  };
}

/** Those that stand while everything else is tried: of each kind and family, two to one endpoint, one without a key. */
export const guestTunnels: readonly AgentTunnel[] = [
  tunnelOf(1, 'GRE', '198.51.100.9'),
  tunnelOf(2, 'GRE', '198.51.100.9', { ips: ['203.0.113.32/28'] }),
  tunnelOf(3, 'GRE', '2001:db8:900::9'),
  tunnelOf(4, 'Geneve', '198.51.100.10'),
  tunnelOf(5, 'Geneve', '2001:db8:900::10'),
  tunnelOf(6, 'GRE', '198.51.100.10', { keyed: false, ips: ['203.0.113.96/28'] }),
];

export function uuidOf(n: number): string {
  return `0190a5d0-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
}

/** An address of each of the tunnel's subnets, for the customer's services. */
export function insideOf(tunnel: AgentTunnel): readonly string[] {
  return addressesOf(tunnel, 5n);
}

/** The addresses at that place of each of the tunnel's subnets. */
export function addressesOf({ ips }: AgentTunnel, place: bigint): readonly string[] {
  return ips.map((text) => {
    const { family, value } = prefixFromTrusted(text);
    return formatAddress({ family, value: value + place });
  });
}

/** The pairs inside, IPv4 first. */
export function innerOf(tunnel: AgentTunnel): readonly [Pair, Pair] {
  return [pairOf(tunnel.inner_ipv4), pairOf(tunnel.inner_ipv6)];
}

type Pair = ReturnType<typeof pairOf>;

function pairOf(text: string) {
  const { router, customer } = innerAddresses(prefixFromTrusted(text));
  return { router: formatAddress(router), customer: formatAddress(customer) };
}

/** As `GET /tunnel/{uuid}/config?format=iproute2` answers it, to the octet (customers-text.test.ts). */
export function customersText(tunnel: AgentTunnel): string {
  const written = writeConfig('iproute2', configOf(tunnel));
  if (!written.ok) throw new Error(written.lacks);
  return written.text;
}

/** The customer's device of a tunnel. */
export function customersDevice(tunnel: AgentTunnel): string {
  const [end] = configOf(tunnel).ends;
  if (end === undefined) throw new Error('a tunnel without an end');
  return deviceName(end);
}

function configOf(tunnel: AgentTunnel): ConfigTunnel {
  const outer = tunnel.endpoint.includes(':') ? 6 : 4;
  const [inner4, inner6] = innerOf(tunnel);
  return {
    uuid: tunnel.uuid,
    type: tunnel.type,
    keyed: tunnel.keyed !== false,
    outer,
    endpoint: tunnel.endpoint,
    ips: tunnel.ips.map(prefixFromTrusted),
    sizes: sizesOf(tunnel.type, outer),
    tableNumber: tunnel.number,
    ends: [
      {
        ...guestRouter,
        number: tunnel.number,
        order: 0,
        address: tunnel.local_endpoint,
        inner4,
        inner6,
      },
    ],
  };
}

/** A root shell of the customer's, with the texts pasted in as they are; throws with what it complained of. */
export async function paste(customer: Namespace, texts: readonly string[]): Promise<void> {
  const shell = spawn('ip', ['netns', 'exec', customer.name, 'sh'], { stdio: ['pipe', 'pipe', 'pipe'] });
  const chunks: Buffer[] = [];
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  shell.stdin.end(texts.join('\n'));
  await new Promise((resolve, reject) => shell.on('error', reject).on('close', resolve));
  const said = Buffer.concat(chunks).toString();
  if (said !== '') throw new Error(`the customer's shell said: ${said}`);
}
