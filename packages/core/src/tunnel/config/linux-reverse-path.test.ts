/**
 * The Linux formats on a machine that filters strictly by reverse path, as hardening guides and some distributions set
 * it: replies leave by the first end, so that what arrives by another would be dropped. Ends of veth pairs stand for the
 * tunnels' devices, which this kernel may not know; another namespace is the world behind both routers.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type ConfigTunnel, deviceName } from './config-tunnel.ts';
import { iproute2 } from './iproute2.ts';
import { netplan } from './netplan.ts';
import { systemdNetworkd } from './systemd-networkd.ts';
import { sampleTunnels } from './testing/sample-tunnels.ts';

const systemdSysctl = '/usr/lib/systemd/systemd-sysctl';
const skip =
  (process.getuid?.() !== 0 && 'network namespaces need root') ||
  (spawnSync('sh', ['-c', 'command -v ip && command -v nft']).status !== 0 &&
    'iproute2 or nftables is not installed') ||
  (!existsSync(systemdSysctl) && 'systemd is not installed');

const folder = mkdtempSync(join(tmpdir(), `levee-reverse-path-${process.pid}-`));
after(() => rmSync(folder, { recursive: true, force: true }));

const tunnel = sampleTunnels['two-ends'] as ConfigTunnel;
const [customer, client] = ['203.0.113.1', '198.51.100.77'];

/** The text without the devices, which are there already, and without what it sets for them in the kernel. */
function routesOf(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^(ip link add|sysctl) /.test(line))
    .join('\n');
}

/**
 * Which ends a stranger gets an answer through, when `setUp` was run by a shell on the customer's machine: a refused
 * connection is an answer too.
 */
function answeredThrough(setUp: string): string[] {
  const file = join(folder, 'set-up.sh');
  writeFileSync(file, setUp);
  const ends = tunnel.ends.map((end) => ({ name: deviceName(end), peer: `peer${end.order}`, ...end.inner4 }));
  const outside = 'ip netns exec outside';
  const script = [
    'set -e',
    // Names of namespaces that go with this one.
    'mkdir -p /run/netns && mount -t tmpfs none /run/netns',
    'ip netns add outside',
    'echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter',
    'ip link set lo up',
    `ip address add ${customer}/32 dev lo`,
    // What is not of ips goes another way.
    'ip link add uplink type veth peer name beyond && ip link set uplink up && ip link set beyond up',
    'ip route add default dev uplink',
    // A tunnel asks for no neighbours; the stand-in does, and must not do it in the stranger's name.
    `${outside} sh -c 'echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce'`,
    `${outside} ip link set lo up`,
    `${outside} ip address add ${client}/32 dev lo`,
    ...ends.flatMap(({ name, peer, router }) => [
      `ip link add ${name} type veth peer name ${peer} netns outside`,
      `${outside} ip address add ${router}/31 dev ${peer}`,
      `${outside} ip link set ${peer} up`,
    ]),
    `sh -e ${file}`,
    'set +e',
    ...ends.flatMap(({ name, peer, customer: via }) => [
      `${outside} ip route replace ${customer}/32 via ${via} dev ${peer} src ${client}`,
      `${outside} timeout 2 bash -c '</dev/tcp/${customer}/9' 2>&1 | grep -q refused && echo ${name}`,
    ]),
    'true',
  ];
  const { status, stdout, stderr } = spawnSync('unshare', ['--net', '--mount', 'sh', '-c', script.join('\n')], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  assert.deepEqual([status, stderr], [0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

/** What udev runs when a device appears, with the file that the text gives. */
function appliedByUdev(settings: string): string {
  const file = join(folder, 'levee.conf');
  writeFileSync(file, settings);
  const prefixes = tunnel.ends.map((end) => `--prefix=/net/ipv4/conf/${deviceName(end)}`);
  return `${systemdSysctl} ${prefixes.join(' ')} ${file}`;
}

const names = tunnel.ends.map(deviceName);
const routes = routesOf(iproute2.write(tunnel));

test('without more the machine drops what comes through another end than the first', { skip }, () => {
  assert.deepEqual(answeredThrough(routes), names.slice(0, 1));
});

test('iproute2: a stranger is answered through every end', { skip }, () => {
  const text = iproute2.write(tunnel).replaceAll(/^ip link add .*\n/gm, '');
  assert.deepEqual(answeredThrough(text), names);
});

test('systemd-networkd: a stranger is answered through every end', { skip }, () => {
  const files = systemdNetworkd.write(tunnel).matchAll(/^cat > \/etc\/sysctl\.d\/\S+ <<'EOF'\n([\s\S]*?\n)EOF$/gm);
  const settings = [...files].map(([, body]) => body).join('');
  assert.deepEqual(answeredThrough(`${routes}\n${appliedByUdev(settings)}`), names);
});

test('netplan: a stranger is answered through every end', { skip }, () => {
  const [, lines] = /^# .*\/etc\/sysctl\.d\/.*\n((?:# {3}.*\n)+)/m.exec(netplan.write(tunnel)) ?? [];
  assert.ok(lines);
  const settings = lines.replaceAll(/^# {3}/gm, '');
  assert.deepEqual(answeredThrough(`${routes}\n${appliedByUdev(settings)}`), names);
});
