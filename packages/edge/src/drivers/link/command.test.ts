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
    `route add 203.0.113.0/28 via 10.48.0.3 dev lvtest1 proto ${protocol}`,
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
      { prefix: '203.0.113.0/28', via: '10.48.0.3' },
      { prefix: '203.0.113.77/32', via: '10.48.0.3' },
      { prefix: '2001:db8:7::/48', via: 'fd6c:6576:6565::3' },
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
