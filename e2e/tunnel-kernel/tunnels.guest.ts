/**
 * Tunnels in a kernel that has them: the edge's program in the router's namespace, a control plane beside it, customers
 * that paste the configuration they are given. Run in a guest by `tunnel-kernel.test.ts`.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { sizesOf } from '@levee/core/tunnel/mtu.ts';
import { startControlPlane } from '@levee/edge/testing/control-plane.ts';
import { until } from '@levee/edge/testing/until.ts';
import { deviceName } from '@levee/edge/tunnels/device-name.ts';
import { enterNamespace, type Namespace } from '@levee/lab/namespace.ts';
import { system } from '@levee/lab/system-calls.ts';
import { boundSocket, CustomerServices, Flow, transfer } from './flows.ts';
import {
  addressesOf,
  buildNetwork,
  customersDevice,
  customersText,
  guestTunnels,
  hostBehind,
  innerOf,
  insideOf,
  paste,
  tunnelOf,
  uuidOf,
  visitorAddresses,
} from './network.ts';

const { visitor, router, customers } = buildNetwork();
enterNamespace(visitor.name);

const directory = mkdtempSync(join(tmpdir(), 'tunnels-'));
const controlPlane = await startControlPlane({ socketPath: join(directory, 'control.sock') });
const tunnels = guestTunnels;
const customerOf = (n: number) => customers[n <= 3 ? 0 : 1];
const ownOf = (customer: Namespace) => tunnels.filter(({ number }) => customerOf(number) === customer);
const services = customers.map((customer) => {
  const addresses = ownOf(customer).flatMap(insideOf);
  customer.ip(addresses.map((each) => `address add ${each} dev lo${each.includes(':') ? ' nodad' : ''}`));
  return new CustomerServices(customer, addresses);
});
let edge: ChildProcess;

async function startRouter(): Promise<void> {
  const settings = {
    controlPlanes: [controlPlane.address],
    key: controlPlane.key,
    stateDirectory: join(directory, 'state'),
    driver: 'kernel',
    intervals: { reportMilliseconds: 1000, tunnelCheckMilliseconds: 2000, probeMilliseconds: 500 },
  };
  const program = join(import.meta.dirname, '..', '..', 'packages', 'edge', 'src', 'testing', 'edge-process.ts');
  const command = ['netns', 'exec', router.name, process.execPath, program, JSON.stringify(settings)];
  edge = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, EDGE_LOG: 'warn' } });
  await new Promise((resolve, reject) => {
    edge.stdout?.once('data', resolve);
    edge.once('exit', (code) => reject(new Error(`the edge ended with ${code}`)));
  });
}

const settled = () => until('all is acknowledged', () => controlPlane.acknowledged === controlPlane.position, 60_000);
const failures = () => controlPlane.reports.at(-1)?.failures ?? [];
const failureOf = (n: number) => failures().find(({ uuid }) => uuid === uuidOf(n))?.reason;
const statusSeen = () => controlPlane.reports.findLast(({ status }) => status !== undefined)?.status;
const driftSeen = () => (statusSeen()?.tunnels as { drift?: number } | undefined)?.drift ?? 0;
const nameOf = (n: number) => deviceName(uuidOf(n), 0);
const devicesOf = () =>
  router
    .enter(() => readFileSync('/proc/thread-self/net/dev', 'utf8'))
    .split('\n')
    .flatMap((line) => /^\s*(lv[0-9a-z]{13}):/.exec(line)?.[1] ?? []);
const indexes = () => router.enter(() => tunnels.map(({ number }) => system.if_nametoindex(nameOf(number))));
const everyAddress = tunnels.flatMap(insideOf);

/** One datagram to each, and back. */
async function assertPasses(t: TestContext, addresses: readonly string[] = everyAddress): Promise<void> {
  const flow = new Flow([]);
  t.after(() => flow.close());
  for (const address of addresses) flow.once(address);
  await until('all come back', () => flow.missing.length === 0, 5_000).catch(() => undefined);
  assert.deepEqual(flow.missing, []);
}

/** Datagrams through these tunnels while `work` is done: none may be lost. */
async function withTraffic(t: TestContext, numbers: readonly number[], work: () => Promise<void>): Promise<void> {
  const flow = new Flow(tunnels.filter(({ number }) => numbers.includes(number)).flatMap(insideOf), 40);
  t.after(() => flow.close());
  await work();
  flow.pause();
  await until('all come back', () => flow.missing.length === 0, 5_000).catch(() => undefined);
  assert.deepEqual(flow.missing, []);
  t.diagnostic(`${[...flow.sent.values()].reduce((sum, sent) => sum + sent, 0)} datagrams sent meanwhile, 0 lost`);
}

before(async () => {
  controlPlane.upsert(...tunnels);
  await Promise.all([startRouter(), ...customers.map((each) => paste(each, ownOf(each).map(customersText)))]);
  await settled();
});
after(async () => {
  edge.kill('SIGKILL');
  for (const each of services) each.close();
  await controlPlane.close();
});

test('the customer’s pasted end makes every kind of tunnel pass traffic, of both families', async (t) => {
  assert.deepEqual(failures(), []);
  assert.deepEqual(
    controlPlane.reports.at(-1)?.capabilities?.filter((each) => each.startsWith('tunnel:')),
    ['tunnel:GRE', 'tunnel:Geneve'],
  );
  await assertPasses(t);
});

test('200 kB go both ways over TCP while nothing tells of too large packets', async () => {
  for (const address of everyAddress) assert.equal(await transfer(address, 200_000, 10_000), 200_000, address);
});

test('so they do from and to a host behind the customer, when the router alone makes segments smaller', async (t) => {
  const [tunnel] = tunnels as [AgentTunnel];
  const addresses = addressesOf(tunnel, 9n);
  const host = hostBehind(customers[0], addresses);
  customers[0].loadNft(`delete table inet levee_${tunnel.number}\n`);
  const service = new CustomerServices(host, addresses);
  t.after(() => service.close());
  for (const address of addresses) assert.equal(await transfer(address, 200_000, 10_000), 200_000, address);
});

test('a packet that must not be cut passes at the full MTU, and not with an octet more', async () => {
  const ping = (address: string, octets: number) =>
    new Promise<string>((resolve, reject) => {
      const headers = address.includes(':') ? 48 : 28;
      const child = spawn('ping', ['-q', '-c1', '-W2', '-Mdo', `-s${octets - headers}`, address], { stdio: 'ignore' });
      child.on('error', reject).on('close', (code) => resolve(`${address} ${octets} ${code === 0}`));
    });
  const mtuOf = ({ type, endpoint }: AgentTunnel) => sizesOf(type, endpoint.includes(':') ? 6 : 4).mtu;
  const [first] = tunnels as [AgentTunnel];
  const tries = [
    ...tunnels.flatMap((tunnel) => insideOf(tunnel).map((each) => [each, mtuOf(tunnel), true] as const)),
    ...insideOf(first).map((each) => [each, mtuOf(first) + 1, false] as const),
  ];
  assert.deepEqual(
    await Promise.all(tries.map(([address, octets]) => ping(address, octets))),
    tries.map(([address, octets, passes]) => `${address} ${octets} ${passes}`),
  );
});

test('a source that is not the tunnel’s gets out of it neither further nor to the router', async (t) => {
  const [customer] = customers;
  const [first] = tunnels as [AgentTunnel];
  const foreign = ['203.0.113.200', '2001:db8:7fff::5'] as const;
  // What is to be seen is the table's work, not the reverse path filter's.
  router.sysctl({ 'ipv4/conf/all/rp_filter': 0, [`ipv4/conf/${nameOf(1)}/rp_filter`]: 0 });
  customer.ip(foreign.map((each) => `address add ${each} dev lo`));
  for (const [index, each] of foreign.entries()) {
    customer.run('ip', [index === 0 ? '-4' : '-6', 'rule', 'add', 'from', each, 'lookup', '10001', 'priority', '900']);
  }
  const heard: string[] = [];
  const listen = (address: string) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4').bind(7100, address);
    t.after(() => socket.close());
    socket.on('message', (_, sender) => heard.push(`${sender.address} at ${address}`));
    return new Promise((resolve) => socket.once('listening', resolve));
  };
  const [ipv4, ipv6] = visitorAddresses;
  const [inner4, inner6] = innerOf(first);
  await Promise.all([listen(ipv4), listen(ipv6)]);
  for (const address of [inner4.router, inner6.router]) {
    const socket = boundSocket(router, 7100, address);
    t.after(() => socket.close());
    socket.on('message', (_, sender) => heard.push(`${sender.address} at ${address}`));
  }
  const send = (from: string, to: string) => {
    const socket = boundSocket(customer, 7200, from);
    t.after(() => socket.close());
    socket.send('x', 7100, to);
  };
  const [own4 = '', own6 = ''] = insideOf(first);
  for (const [from, ...to] of [
    [foreign[0], ipv4, inner4.router],
    [foreign[1], ipv6, inner6.router],
    [own4, ipv4, inner4.router],
    [own6, ipv6, inner6.router],
    [inner4.customer, inner4.router],
    [inner6.customer, inner6.router],
  ] as const) {
    for (const each of to) send(from, each);
  }
  const right = [
    `${own4} at ${ipv4}`,
    `${own4} at ${inner4.router}`,
    `${own6} at ${ipv6}`,
    `${own6} at ${inner6.router}`,
    `${inner4.customer} at ${inner4.router}`,
    `${inner6.customer} at ${inner6.router}`,
  ].sort();
  // Sent last, they would be heard last.
  await until('the right ones are heard', () => right.every((each) => heard.includes(each)), 5_000).catch(
    () => undefined,
  );
  assert.deepEqual([...heard].sort(), right);
});

test('probes tell round trips and losses', async () => {
  controlPlane.upsert(tunnelOf(7, 'GRE', '198.51.100.10'));
  await settled();
  const probesOf = (n: number) =>
    controlPlane.reports.flatMap(({ probes }) => probes?.find(({ uuid }) => uuid === uuidOf(n)) ?? []);
  const known = () => tunnels.every(({ number }) => probesOf(number).some(({ received }) => received > 0));
  await until(
    'all customers have answered, and nobody where there is none',
    () => known() && probesOf(7).length > 0,
    15_000,
  );
  for (const { number } of tunnels) {
    for (const { sent, received, rtt_ms: rtt, last_answer_at: last } of probesOf(number)) {
      assert.ok(sent >= received && sent > 0);
      if (received === 0) continue;
      assert.ok(rtt && rtt.min > 0 && rtt.min <= rtt.avg && rtt.avg <= rtt.max && rtt.max < 3_000, JSON.stringify(rtt));
      assert.ok(Math.abs(Date.parse(last ?? '') - Date.now()) < 60_000);
    }
  }
  for (const probe of probesOf(7))
    assert.deepEqual({ ...probe, sent: probe.sent > 0 }, { uuid: uuidOf(7), sent: true, received: 0 });
});

test('what fails is told tunnel by tunnel, holds up no other, and is made up for when it can be', async (t) => {
  router.ip([
    'route add 10.66.0.0/24 dev lo',
    'link add theirs type gre local 192.0.2.1 remote 198.51.100.10 ttl 64 key 9',
  ]);
  controlPlane.upsert(
    tunnelOf(8, 'GRE', '198.51.100.10', { ips: ['10.66.0.0/24'] }),
    tunnelOf(9, 'GRE', '198.51.100.10'),
    tunnelOf(10, 'GRE', '198.51.100.10', { local_endpoint: '192.0.2.99' }),
    tunnelOf(11, 'Geneve', '198.51.100.10', { ips: ['10.67.0.0/24', 'nonsense'] }),
    tunnelOf(12, 'Geneve', '198.51.100.10', { ips: ['10.68.0.0/24'] }),
  );
  await settled();
  await until('all failures are told', () => failures().length === 4);
  assert.equal(
    failureOf(8),
    "10.66.0.0/24 is routed elsewhere on the router: on lo (protocol boot, metric 0), which comes before the tunnel's (metric 10)",
  );
  assert.equal(failureOf(9), 'another device of the router has GRE from 192.0.2.1 to 198.51.100.10 with key 9 already');
  assert.equal(failureOf(10), '192.0.2.99 is no address of this router: nothing arrives for the tunnel');
  assert.equal(failureOf(11), 'ips: "nonsense" is no subnet');
  await assertPasses(t);
  router.ip(['route del 10.66.0.0/24 dev lo', 'link del theirs', 'address add 192.0.2.99/32 dev lo']);
  await until('all but one are mended', () => failures().length === 1, 10_000);
  controlPlane.remove(...[7, 8, 9, 10, 11, 12].map(uuidOf));
  await settled();
  assert.deepEqual(failures(), []);
});

test('what another program changes is mended and counted; what is not ours stays as it is', async (t) => {
  const before = driftSeen();
  router.ip([
    'link add lvtheirs type gre local 192.0.2.1 remote 198.51.100.10 ttl 64 key 4242',
    'route add 10.66.0.0/24 dev lo proto static',
    `link del ${nameOf(2)}`,
    `link set ${nameOf(3)} mtu 1300`,
    `route del 203.0.113.64/28 dev ${nameOf(4)}`,
    `address del ${innerOf(tunnels[4] as AgentTunnel)[1].router}/127 dev ${nameOf(5)}`,
  ]);
  router.loadNft('delete table inet levee_tunnel\ntable inet theirs { chain a { }\n}\n');
  await until('all five are counted', () => driftSeen() >= before + 5, 10_000);
  await assertPasses(t);
  assert.deepEqual(failures(), []);
  const left = router.run('sh', ['-c', 'ip link show lvtheirs; ip route show proto static; nft list tables']);
  assert.equal(statusSeen()?.drift, 0, 'the table of rules is not meant');
  assert.match(left, /lvtheirs[\s\S]*10\.66\.0\.0\/24 dev lo[\s\S]*inet theirs/);
});

test('a router’s own route or setting that keeps packets from tunnels is told, and so is its end', async (t) => {
  const six = tunnels.filter(({ ips }) => ips.some((each) => each.includes(':'))).map(({ uuid }) => uuid);
  const reasons = () => Object.fromEntries(failures().map(({ uuid, reason }) => [uuid, reason]));
  const told = (wanted: Record<string, string>) =>
    until(
      `exactly ${Object.keys(wanted).length} failures are told`,
      () => JSON.stringify(Object.entries(reasons()).sort()) === JSON.stringify(Object.entries(wanted).sort()),
      15_000,
    ).catch(() => assert.deepEqual(reasons(), wanted));
  // One of each family comes before ours and one behind; of the device, what the kernel lists otherwise than it was set.
  router.ip([
    'route add 203.0.113.32/28 via 100.64.1.1 proto bgp metric 5',
    'route add 2001:db8:7001::/64 via 2001:db8:1::1 proto bgp metric 5',
    'route add 203.0.113.64/28 via 100.64.1.1 proto bgp metric 20',
    'route add 2001:db8:7004::/64 via 2001:db8:1::1 proto bgp metric 20',
    `link set dev ${nameOf(4)} type geneve id 4 remote 198.51.100.10 ttl inherit`,
    `link set dev ${nameOf(3)} group 0`,
  ]);
  router.run('ip', ['link', 'set', nameOf(3), 'alias', '']);
  router.sysctl({ 'ipv6/conf/all/forwarding': 0, 'ipv6/conf/default/disable_ipv6': 1 });
  t.after(() => router.sysctl({ 'ipv6/conf/all/forwarding': 1, 'ipv6/conf/default/disable_ipv6': 0 }));
  controlPlane.upsert(
    tunnelOf(7, 'GRE', '198.51.100.10', { ips: ['10.66.1.0/24'] }),
    tunnelOf(8, 'Geneve', '198.51.100.10', { ips: ['10.66.2.0/24', '2001:db8:7008::/64'] }),
  );
  const elsewhere = (subnet: string, via: string) =>
    `${subnet} is routed elsewhere on the router: via ${via} on uplink (protocol bgp, metric 5), which comes before the tunnel's (metric 10)`;
  const second = { [uuidOf(2)]: elsewhere('203.0.113.32/28', '100.64.1.1') };
  const off = Object.fromEntries(six.map((uuid) => [uuid, 'IPv6 forwarding is switched off on this router']));
  // No IPv6 for new devices: only where a subnet needs it.
  const lacking = { [uuidOf(8)]: 'IPv6 is switched off on this router' };
  await told({ ...off, ...second, ...lacking });
  assert.match(router.run('ip', ['route', 'get', '10.66.1.9']), new RegExp(`dev ${nameOf(7)} `));
  controlPlane.remove(uuidOf(7), uuidOf(8));
  const forwarding = () => (statusSeen()?.forwarding ?? {}) as { ipv4?: boolean; ipv6?: boolean };
  await until('the status tells it too', () => forwarding().ipv4 === true && forwarding().ipv6 === false);
  router.sysctl({ 'ipv6/conf/all/forwarding': 1 });
  await told({ [uuidOf(1)]: elsewhere('2001:db8:7001::/64', '2001:db8:1::1'), ...second });
  router.ip([
    'route del 203.0.113.32/28 via 100.64.1.1 metric 5',
    'route del 2001:db8:7001::/64 via 2001:db8:1::1 metric 5',
  ]);
  await told({});
  await assertPasses(t);
  const listed = router.run('ip', ['-details', 'link', 'show']);
  assert.match(listed, /geneve id 4 remote 198\.51\.100\.10 ttl 64 /);
  assert.match(listed, new RegExp(`${nameOf(3)}@[\\s\\S]*? group 27766 [\\s\\S]*?alias ${uuidOf(3)}`));
  router.ip([
    'route del 203.0.113.64/28 via 100.64.1.1 metric 20',
    'route del 2001:db8:7004::/64 via 2001:db8:1::1 metric 20',
  ]);
});

test('another endpoint takes the device along, and no packet of other tunnels', async (t) => {
  const devices = indexes();
  const changed = [tunnelOf(1, 'GRE', '198.51.100.19'), tunnelOf(4, 'Geneve', '198.51.100.20')] as const;
  await withTraffic(t, [2, 3, 5, 6], async () => {
    controlPlane.upsert(...changed);
    await settled();
    const [device] = changed.map(customersDevice);
    customers[0].ip([`link change dev ${device} type gre local 198.51.100.19 remote 192.0.2.1 ttl 64 key 1`]);
    // Geneve sends from the address of the way out.
    customers[1].ip(['route change default via 100.64.3.1 src 198.51.100.20']);
    await assertPasses(t, changed.flatMap(insideOf));
  });
  assert.deepEqual([failures(), indexes()], [[], devices]);
});

test('200 tunnels come and go, and no packet of the others is lost', async (t) => {
  const many = Array.from({ length: 200 }, (_, n) =>
    tunnelOf(100 + n, n % 2 ? 'Geneve' : 'GRE', '198.51.100.9', { ips: [`10.20.${n}.0/24`] }),
  );
  const seconds = async (work: () => Promise<void>): Promise<string> => {
    const from = performance.now();
    await work();
    return ((performance.now() - from) / 1000).toFixed(1);
  };
  await withTraffic(t, [1, 4], async () => {
    const made = await seconds(async () => {
      controlPlane.upsert(...many);
      await settled();
    });
    assert.deepEqual([failures(), devicesOf().length], [[], 206]);
    // The first of them again, as another tunnel: what its device needs is still taken by one that is to be deleted.
    const heir = { ...(many[0] as AgentTunnel), uuid: uuidOf(1000), sequence: 1000 };
    const silent = await seconds(async () => {
      controlPlane.remove(...many.map(({ uuid }) => uuid));
      controlPlane.upsert(heir);
      await settled();
    });
    assert.deepEqual(failures(), []);
    const gone = await seconds(() => until('their devices are gone', () => devicesOf().length === 7, 60_000));
    controlPlane.remove(heir.uuid);
    await settled();
    t.diagnostic(`200 tunnels: made in ${made} s, silent in ${silent} s, deleted ${gone} s later`);
  });
});

test('an edge that is killed and started again loses no packet, and takes its devices over as they are', async (t) => {
  controlPlane.upsert(tunnelOf(7, 'GRE', '198.51.100.10'));
  await settled();
  const devices = indexes();
  await withTraffic(t, [1, 2, 3, 4, 5, 6], async () => {
    const exit = new Promise((resolve) => edge.once('exit', resolve));
    edge.kill('SIGKILL');
    await exit;
    controlPlane.remove(uuidOf(7));
    await startRouter();
    await settled();
  });
  assert.deepEqual([failures(), indexes()], [[], devices]);
  await until('what was removed meanwhile is gone', () => devicesOf().length === tunnels.length, 60_000);
});
