import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { enterOwnNamespace } from '../../testing/own-namespace.ts';
import { failuresOf, openLinkCommand } from './command.ts';
import type { Link } from './port.ts';

const skip = enterOwnNamespace() ?? false;
const protocol = 108;
const driver = openLinkCommand(protocol);
const alias = '0190a5d0-1111-7000-8000-000000000001';

test('what was done by commands is seen: name, alias, group, kind, addresses, and routes of our protocol alone', {
  skip,
}, async () => {
  const failures = await driver.run([
    'link add name lvtest1 mtu 1400 group 27766 type veth peer name lvtest2',
    `link set dev lvtest1 alias ${alias}`,
    'address add 10.48.0.2/31 dev lvtest1',
    'address add fd6c:6576:6565::2/127 dev lvtest1 nodad',
    'link set dev lvtest1 up',
    'link set dev lvtest2 up',
    `route add 203.0.113.0/28 via 10.48.0.3 dev lvtest1 proto ${protocol} metric 10`,
    `route add 203.0.113.77/32 via 10.48.0.3 dev lvtest1 proto ${protocol}`,
    `route add 2001:db8:7::/48 via fd6c:6576:6565::3 dev lvtest1 proto ${protocol}`,
    'route add 198.51.100.0/24 via 10.48.0.3 dev lvtest1 proto static',
    `route add 192.0.2.0/24 via 10.48.0.3 dev lvtest1 proto ${protocol} table 77`,
  ]);
  assert.deepEqual(failures, Array.from({ length: 11 }));
  const links = await driver.look();
  const { details, ...seen } = links.find(({ name }) => name === 'lvtest1') as Link;
  assert.deepEqual(seen, {
    name: 'lvtest1',
    alias,
    kind: 'veth',
    up: true,
    mtu: 1400,
    group: 27766,
    addresses: ['10.48.0.2/31', 'fd6c:6576:6565::2/127'],
    routes: [
      { prefix: '203.0.113.0/28', via: '10.48.0.3', metric: 10 },
      { prefix: '203.0.113.77/32', via: '10.48.0.3', metric: 0 },
      { prefix: '2001:db8:7::/48', via: 'fd6c:6576:6565::3', metric: 1024 },
    ],
  });
  assert.deepEqual(details, {});
  assert.equal(links.find(({ name }) => name === 'lo')?.kind, undefined);
});

test('a line that fails is told by its place, and those behind it are carried out', { skip }, async () => {
  const failures = await driver.run([
    'link delete dev nothing',
    'link add name lvtest3 mtu 1400 type veth peer name lvtest4',
    'link add name lvtest3 mtu 1400 type veth peer name lvtest4',
    'link add name lvtest5 type nonsense',
    'link set dev lvtest3 up',
  ]);
  assert.deepEqual(failures, [
    'Cannot find device "nothing"',
    undefined,
    'File exists',
    'Unknown device type.',
    undefined,
  ]);
  assert.equal((await driver.look()).find(({ name }) => name === 'lvtest3')?.up, true);
});

test('of several routes to a subnet the one that the kernel takes is told, whoever made it', { skip }, async () => {
  const ours = `dev lvtest1 proto ${protocol} metric 10`;
  const routes = [
    `10.1.0.0/24 via 10.48.0.3 ${ours}`,
    '10.1.0.0/24 via 10.48.0.4 dev lvtest1 onlink proto bgp metric 20',
    `10.2.0.0/24 via 10.48.0.3 ${ours}`,
    '10.2.0.0/24 dev lvtest2 proto static',
    `10.3.0.0/24 via 10.48.0.3 ${ours}`,
    'blackhole 10.3.0.0/24',
    `10.4.0.0/24 via 10.48.0.3 ${ours}`,
    // Narrower ones say nothing of the subnet, wider ones neither.
    'blackhole 10.4.0.0/32',
    '10.4.0.0/16 dev lvtest2 metric 1',
    `10.5.0.7/32 via 10.48.0.3 ${ours}`,
    '10.5.0.7/32 dev lvtest2 proto bgp metric 5',
    '10.6.0.0/24 nexthop via 10.48.0.3 dev lvtest1 nexthop dev lvtest2',
    `2001:db8:1::/64 via fd6c:6576:6565::3 ${ours}`,
    '2001:db8:1::/64 dev lvtest2 proto kernel',
    `2001:db8:2::/64 via fd6c:6576:6565::3 ${ours}`,
    '2001:db8:2::/64 dev lvtest2 proto bgp metric 5',
    `2001:db8:3::/64 via fd6c:6576:6565::3 ${ours}`,
    'unreachable 2001:db8:3::/64 metric 5',
  ].map((route) => `route add ${route}`);
  assert.deepEqual(
    await driver.run(routes),
    routes.map(() => undefined),
  );
  const subnets = '10.1.0.0/24 10.2.0.0/24 10.3.0.0/24 10.4.0.0/24 10.5.0.7/32 10.6.0.0/24 10.7.0.0/24';
  const six = '2001:db8:1::/64 2001:db8:2::/64 2001:db8:3::/64 2001:db8:4::/64';
  const taken = await driver.taken(`${subnets} ${six}`.split(' '));
  const shown = [...taken].map(([prefix, route]) =>
    route.discards
      ? `${prefix} discarded`
      : `${prefix} ${route.via ?? ''} ${route.device} ${route.protocol} ${route.metric}`,
  );
  assert.deepEqual(shown.sort(), [
    '10.1.0.0/24 10.48.0.3 lvtest1 108 10',
    '10.2.0.0/24  lvtest2 static 0',
    '10.3.0.0/24 discarded',
    '10.4.0.0/24 10.48.0.3 lvtest1 108 10',
    '10.5.0.7/32  lvtest2 bgp 5',
    '10.6.0.0/24 10.48.0.3 lvtest1 boot 0',
    '2001:db8:1::/64 fd6c:6576:6565::3 lvtest1 108 10',
    '2001:db8:2::/64  lvtest2 bgp 5',
    '2001:db8:3::/64 discarded',
  ]);
  assert.deepEqual(await driver.taken([]), new Map());
});

test('names of links are read without ip', { skip }, async () => {
  assert.deepEqual([...driver.names()].sort(), (await driver.look()).map(({ name }) => name).sort());
});

test('an address is the machine’s own when a link has it, or a local route says so', { skip }, async () => {
  execFileSync('ip', ['route', 'add', 'local', '192.0.2.0/24', 'dev', 'lo']);
  execFileSync('ip', ['route', 'add', 'default', 'dev', 'lvtest1']);
  assert.equal(await driver.isLocal('10.48.0.2'), true);
  assert.equal(await driver.isLocal('192.0.2.9'), true);
  assert.equal(await driver.isLocal('203.0.113.9'), false);
  assert.equal(await driver.isLocal('2001:db8:99::9'), false);
});

test('nothing to do starts nothing, and what ip says without a reason is told as that', async () => {
  assert.deepEqual(await driver.run([]), []);
  assert.deepEqual(failuresOf('Command failed -:2', 2), [undefined, 'ip did not say why']);
});
