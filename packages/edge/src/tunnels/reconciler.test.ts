import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { pino } from 'pino';
import { createFakeLinks } from '../drivers/link/fake.ts';
import { createFakeNft } from '../drivers/nft/fake.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';
import { deviceName } from './device-name.ts';
import { routeProtocol } from './ip-lines.ts';
import { createTunnelReconciler } from './reconciler.ts';
import { tunnelTable } from './tunnel-table.ts';

/** A kernel in memory that outlives the reconcilers on it. */
function createWorld(t: TestContext) {
  const links = createFakeLinks(routeProtocol);
  const nft = createFakeNft();
  links.foreign('link add name lo mtu 65536 type dummy', 'address add 203.0.113.1/32 dev lo', 'link set dev lo up');
  const forwarding = { ipv4: true, ipv6: true };
  const log: { readonly msg: string }[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void log.push(JSON.parse(line)) });
  const probed = { uuids: [] as string[] };
  const open = () => {
    const told = { changes: 0 };
    const reconciler = createTunnelReconciler(
      {
        links,
        nft: nft.open().driver,
        prober: {
          set: (devices) => {
            probed.uuids = devices.map(({ uuid }) => uuid);
          },
          take: () => [],
          status: () => ({}),
          stop: () => undefined,
        },
        capabilities: () => ['tunnel:GRE'],
        forwarding: () => forwarding,
        checkMilliseconds: 20,
        retryMilliseconds: 20,
        logger,
      },
      {
        changed: () => {
          told.changes += 1;
        },
      },
    );
    t.after(() => reconciler.stop());
    const applied = (token: number) => until(`token ${token} is applied`, () => reconciler.applied === token);
    return { reconciler, told, applied };
  };
  const devices = () =>
    links
      .links()
      .flatMap(({ name, up }) => (name.startsWith('lv') && up ? [name] : []))
      .sort();
  return { links, nft, forwarding, log, probed, open, devices, table: () => nft.dump(tunnelTable) };
}

const mapOf = (...tunnels: AgentTunnel[]) => new Map(tunnels.map((tunnel) => [tunnel.uuid, tunnel]));
const nameOf = (tunnel: AgentTunnel) => deviceName(tunnel.uuid, 0);
const [one, two] = [tunnelOf(1), tunnelOf(2)];

test('what is wanted is made, and told once it is there', async (t) => {
  const { open, devices, table, probed } = createWorld(t);
  const { reconciler, told, applied } = open();
  await reconciler.start(new Map());
  reconciler.want(mapOf(one), 1);
  assert.equal(reconciler.applied, 0);
  reconciler.want(mapOf(one, two), 2);
  await applied(2);
  assert.deepEqual(devices(), [nameOf(one), nameOf(two)].sort());
  assert.match(table(), new RegExp(nameOf(two)));
  assert.deepEqual(reconciler.failures(), []);
  assert.deepEqual(reconciler.status(), { devices: 2, deleting: 0, drift: 0 });
  assert.deepEqual(probed.uuids.sort(), [one.uuid, two.uuid].sort());
  assert.ok(told.changes >= 1);
});

test('a tunnel that fails is told with its reason, holds up nothing, and is made when it can be', async (t) => {
  const { links, open, devices, probed } = createWorld(t);
  links.lacking.add('gre').add('ip6gre').add('geneve');
  const { reconciler, applied } = open();
  const ipv6 = { endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' };
  const tunnels = [one, tunnelOf(3, ipv6), tunnelOf(4, { type: 'Geneve' }), tunnelOf(5, { number: 0 })];
  await reconciler.start(new Map());
  reconciler.want(mapOf(...tunnels), 1);
  await applied(1);
  assert.deepEqual(
    tunnels.map(({ uuid }) => reconciler.failures().find((failure) => failure.uuid === uuid)?.reason),
    ['kernel lacks ip_gre', 'kernel lacks ip6_gre', 'kernel lacks geneve', '0 is no key'],
  );
  assert.deepEqual([devices(), probed.uuids], [[], []]);
  links.lacking.delete('gre');
  await until('the first is made', () => reconciler.failures().every(({ uuid }) => uuid !== one.uuid));
  assert.deepEqual([devices(), probed.uuids], [[nameOf(one)], [one.uuid]]);
});

test('a restart takes over what is right without a command', async (t) => {
  const { links, open, devices } = createWorld(t);
  const first = open();
  await first.reconciler.start(mapOf(one, two));
  await first.reconciler.stop();
  const before = links.done.length;
  const second = open();
  await second.reconciler.start(mapOf(one, two));
  assert.equal(links.done.length, before);
  assert.deepEqual(devices(), [nameOf(one), nameOf(two)].sort());
  assert.deepEqual(second.reconciler.status(), { devices: 2, deleting: 0, drift: 0 });
});

test('as long as nothing was heard every device stays', async (t) => {
  const { links, open, devices, table } = createWorld(t);
  const first = open();
  await first.reconciler.start(mapOf(one, two));
  await first.reconciler.stop();
  const before = [links.done.length, table()];
  const { reconciler, applied } = open();
  await reconciler.start(undefined);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([links.done.length, table()], before);
  reconciler.want(mapOf(two), 1);
  await applied(1);
  assert.deepEqual(devices(), [nameOf(two)]);
});

test('a removed tunnel is applied when it carries nothing, and its device goes afterwards', async (t) => {
  const { links, open, table } = createWorld(t);
  const { reconciler, applied } = open();
  await reconciler.start(mapOf(one, two));
  let tries = 0;
  links.refuse = (line) => {
    if (line !== `link set dev ${nameOf(one)} down`) return undefined;
    tries += 1;
    return 'Operation not permitted';
  };
  reconciler.want(mapOf(two), 1);
  await until('it was tried again', () => tries > 1);
  assert.equal(reconciler.applied, 0);
  links.refuse = (line) => (line.startsWith('link delete') ? 'Device or resource busy' : undefined);
  await applied(1);
  assert.deepEqual(
    links.links().flatMap(({ name, up, addresses, routes }) => (name === nameOf(one) ? [up, addresses, routes] : [])),
    [false, [], []],
  );
  assert.doesNotMatch(table(), new RegExp(nameOf(one)));
  await until('it waits to be deleted', () => reconciler.status().deleting === 1);
  reconciler.want(mapOf(one, two), 2);
  await applied(2);
  assert.equal(reconciler.status().deleting, 0);
  links.refuse = () => undefined;
  reconciler.want(new Map(), 3);
  await applied(3);
  await until('all devices are gone', () => links.links().every(({ name }) => name === 'lo'));
  assert.equal(table(), '');
  assert.equal(reconciler.status().deleting, 0);
});

test('what another program changed is mended and counted, at most once each time', async (t) => {
  const { links, nft, open, devices, table } = createWorld(t);
  const { reconciler } = open();
  await reconciler.start(mapOf(one, two));
  const text = table();
  links.foreign(
    'link add name theirs mtu 1400 type gre local 192.0.2.1 remote 192.0.2.2 ttl 64',
    `link delete dev ${nameOf(one)}`,
    `link set dev ${nameOf(two)} down`,
  );
  nft.foreign(`delete table inet ${tunnelTable}\nadd table inet theirs\n`);
  await until('three are counted', () => reconciler.status().drift === 3);
  await until('they are mended', () => table() === text && devices().length === 2);
  assert.ok(links.links().some(({ name }) => name === 'theirs'));
  assert.equal(reconciler.status().drift, 3);
  assert.deepEqual(reconciler.failures(), []);
});

test('when nothing can be asked every tunnel fails with the reason, and what else there is to acknowledge is not held up', async (t) => {
  const { links, open, devices } = createWorld(t);
  const { reconciler, applied } = open();
  links.broken = 'ip (Debian package iproute2) cannot be run';
  await reconciler.start(mapOf(one));
  reconciler.want(mapOf(one, two), 1);
  await applied(1);
  assert.deepEqual(
    reconciler.failures().map(({ reason }) => reason),
    [links.broken, links.broken],
  );
  links.broken = undefined;
  await until('both are made', () => reconciler.failures().length === 0 && devices().length === 2);
  // Now there is something that may carry traffic: its end is not acknowledged blindly.
  links.broken = 'away';
  reconciler.want(mapOf(one), 2);
  await until('the failure is told', () => reconciler.failures().length === 1);
  assert.equal(reconciler.applied, 1);
  links.broken = undefined;
  await applied(2);
  assert.deepEqual(devices(), [nameOf(one)]);
});

test('before the kernel could be looked at, nothing that was removed is acknowledged while its device is there', async (t) => {
  const { links, open, devices } = createWorld(t);
  const first = open();
  await first.reconciler.start(mapOf(one, two));
  await first.reconciler.stop();
  links.broken = 'ip cannot be run: EAGAIN';
  const failed = (reconciler: { failures(): unknown[] }) =>
    until('the failure is told', () => reconciler.failures().length === 1);
  // Removed in this run; in the one before; by whoever knows all that there is.
  const removedNow = open();
  await removedNow.reconciler.start(mapOf(one, two));
  assert.equal(removedNow.reconciler.applied, 0);
  removedNow.reconciler.want(mapOf(two), 1);
  await failed(removedNow.reconciler);
  assert.equal(removedNow.reconciler.applied, 0);
  await removedNow.reconciler.stop();
  const removedBefore = open();
  await removedBefore.reconciler.start(mapOf(two));
  await failed(removedBefore.reconciler);
  assert.equal(removedBefore.reconciler.applied, -1);
  await removedBefore.reconciler.stop();
  const { reconciler, applied } = open();
  await reconciler.start(undefined);
  reconciler.want(mapOf(two), 1);
  await failed(reconciler);
  assert.equal(reconciler.applied, 0);
  assert.deepEqual(devices(), [nameOf(one), nameOf(two)].sort());
  links.broken = undefined;
  await applied(1);
  assert.deepEqual(devices(), [nameOf(two)]);
});

test('a subnet that goes another way on the router is its tunnel’s failure, until it does no longer', async (t) => {
  const { links, log, open } = createWorld(t);
  const { reconciler } = open();
  const reason = () => reconciler.failures().map(({ reason: text }) => text);
  const told = (text: string | undefined) =>
    until(`${text} is told`, () => reason()[0] === text && reason().length === (text === undefined ? 0 : 1));
  links.foreign('link add name up1 mtu 1500 type dummy', 'link set dev up1 up', 'address add 192.0.2.0/31 dev up1');
  links.foreign('route add 10.200.1.0/24 via 192.0.2.1 dev up1 proto bird metric 32');
  await reconciler.start(mapOf(one, two));
  // Ours comes first: no failure, and it is said whose route it puts out of use.
  assert.deepEqual(reason(), []);
  assert.deepEqual(
    log.map((line) => ({ ...line, time: 0, pid: 0, hostname: '' })),
    [
      {
        ...{ level: 40, time: 0, pid: 0, hostname: '' },
        subnet: '10.200.1.0/24',
        route: 'via 192.0.2.1 on up1 (protocol bird, metric 32)',
        msg: 'a route of the router is out of use as long as a tunnel has its subnet',
      },
    ],
  );
  const elsewhere = (way: string) =>
    `10.200.2.0/24 is routed elsewhere on the router: ${way}, which comes before the tunnel's (metric 10)`;
  links.foreign('route add 10.200.2.0/24 via 192.0.2.1 dev up1 proto bgp metric 5');
  await told(elsewhere('via 192.0.2.1 on up1 (protocol bgp, metric 5)'));
  links.foreign('route add 10.200.2.0/24 dev up1 proto kernel');
  await told(elsewhere('on up1 (protocol kernel, metric 0)'));
  assert.deepEqual(reconciler.status(), { devices: 1, deleting: 0, drift: 0 });
  links.foreign('route del 10.200.2.0/24 dev up1', 'route del 10.200.2.0/24 via 192.0.2.1 dev up1 metric 5');
  await told(undefined);
  links.foreign('route add blackhole 10.200.2.0/24');
  await told("10.200.2.0/24 is discarded on the router: a route that says so comes before the tunnel's");
});

test('where IPv6 is switched off, tunnels of IPv4 subnets alone work, and the others say why they do not', async (t) => {
  const { links, open, devices } = createWorld(t);
  links.refuse = (line) => {
    if (/^address add fd/.test(line)) return 'Permission denied';
    return /^route add 2001/.test(line) ? 'IPv6 is disabled on nexthop device.' : undefined;
  };
  const { reconciler } = open();
  const six = tunnelOf(3, { ips: ['10.200.3.0/24', '2001:db8:3::/48'] });
  await reconciler.start(mapOf(one, six));
  const failures = [{ uuid: six.uuid, reason: 'IPv6 is switched off on this router' }];
  assert.deepEqual([reconciler.failures(), devices().length], [failures, 2]);
  const before = links.done.length;
  links.foreign(`link set dev ${nameOf(one)} mtu 1000`);
  await until('it was looked at again', () => links.done.length > before);
  assert.deepEqual(reconciler.failures(), failures);
  assert.equal(reconciler.status().drift, 1, 'what cannot be mended is no drift');
});

test('a router that does not forward a family fails the tunnels with subnets of it', async (t) => {
  const { forwarding, open, probed } = createWorld(t);
  const { reconciler } = open();
  const six = tunnelOf(3, { ips: ['2001:db8:3::/48'] });
  await reconciler.start(mapOf(one, six));
  assert.deepEqual(reconciler.failures(), []);
  forwarding.ipv4 = false;
  await until('it is told', () => reconciler.failures().length === 1);
  assert.deepEqual(reconciler.failures(), [
    { uuid: one.uuid, reason: 'IPv4 forwarding is switched off on this router' },
  ]);
  assert.deepEqual(probed.uuids, [six.uuid]);
  Object.assign(forwarding, { ipv4: true, ipv6: false });
  await until('the other is told', () => reconciler.failures()[0]?.uuid === six.uuid);
  assert.match(reconciler.failures()[0]?.reason ?? '', /^IPv6 forwarding is switched off/);
  forwarding.ipv6 = true;
  await until('both pass', () => reconciler.failures().length === 0);
});

test('a table that cannot be listed is not taken for one that somebody changed; one that went is, in its own words', async (t) => {
  const { links, nft, log, open, table } = createWorld(t);
  const { reconciler } = open();
  await reconciler.start(mapOf(one));
  const before = nft.transactions;
  nft.refuseListing = 'Error: cache initialization failed: Device or resource busy';
  let looks = nft.listings;
  await until('it was looked for', () => nft.listings > looks + 1);
  assert.deepEqual([reconciler.status().drift, nft.transactions, log], [0, before, []]);
  nft.refuseListing = undefined;
  looks = nft.listings;
  await until('it was looked at', () => nft.listings > looks + 1);
  assert.deepEqual([reconciler.status().drift, nft.transactions, log], [0, before, []]);
  nft.foreign(`delete table inet ${tunnelTable}\n`);
  await until('it is counted', () => reconciler.status().drift === 1);
  await until('it is there', () => table() !== '');
  assert.deepEqual(
    log.map(({ msg }) => msg),
    ['another program changed the table of tunnels: it was put up anew'],
  );
  assert.ok(links.done.length > 0);
});

test('an edge that starts among 500 tunnels takes them over by one look, without a change', async (t) => {
  const { links, nft, open } = createWorld(t);
  const many = mapOf(
    ...Array.from({ length: 500 }, (_, n) =>
      tunnelOf(n + 1, {
        ips: [`10.${100 + (n >> 8)}.${n & 255}.0/24`, `2001:db8:${n.toString(16)}::/48`],
        endpoint: `198.51.${n >> 8}.${n & 255}`,
        inner_ipv4: `10.48.${n >> 7}.${(n & 127) * 2}/31`,
      }),
    ),
  );
  const first = open();
  await first.reconciler.start(many);
  assert.deepEqual(first.reconciler.failures(), []);
  await first.reconciler.stop();
  const [done, looks] = [links.done.length, links.looks];
  const second = open();
  const from = performance.now();
  await second.reconciler.start(many);
  t.diagnostic(`${(performance.now() - from).toFixed(0)} ms`);
  assert.deepEqual([links.done.length, links.looks], [done, looks + 1]);
  assert.deepEqual(second.reconciler.status(), { devices: 500, deleting: 0, drift: 0 });
  assert.equal(nft.transactions, 2, 'the table alone is put up once more, as what it was');
});

test('no device comes up without the table that checks what comes out of it', async (t) => {
  const { nft, open, devices } = createWorld(t);
  nft.refuse = (statement) => (statement.startsWith('add chain') ? 'Operation not supported' : undefined);
  const { reconciler, applied } = open();
  await reconciler.start(new Map());
  reconciler.want(mapOf(one), 1);
  await applied(1);
  assert.match(reconciler.failures()[0]?.reason ?? '', /refuses the table of tunnels: .*Operation not supported/s);
  assert.deepEqual(devices(), []);
  nft.refuse = () => undefined;
  await until('it is made', () => devices().length === 1);
});
