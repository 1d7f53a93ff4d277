/**
 * The Linux formats, read by the programs that they are for: ip and nft in a network namespace, systemd-networkd with
 * the files in place of its own, netplan's generator. A kernel without GRE and Geneve is enough: a device that it does
 * not know is stood in for by one end of a veth pair.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type ConfigTunnel, deviceName } from './config-tunnel.ts';
import { iproute2 } from './iproute2.ts';
import { netplan } from './netplan.ts';
import { systemdNetworkd } from './systemd-networkd.ts';
import { sampleTunnels } from './testing/sample-tunnels.ts';

/** systemd-networkd gives root up before it reads its files. */
function readable(path: string): string {
  chmodSync(path, 0o755);
  return path;
}

const folder = readable(mkdtempSync(join(tmpdir(), `levee-config-${process.pid}-`)));
after(() => rmSync(folder, { recursive: true, force: true }));

const networkd = '/lib/systemd/systemd-networkd';
const notRoot = process.getuid?.() !== 0 && 'network namespaces need root';
const without = (program: string, name: string) =>
  notRoot || (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0 && `${name} is not installed`);

/** In a network namespace of its own, which is gone with it. */
function inNamespace(script: string): { status: number | null; stderr: string; stdout: string } {
  return spawnSync('unshare', ['--net', 'sh', '-c', script], { encoding: 'utf8', timeout: 20_000 });
}

const samples = Object.entries(sampleTunnels);
/** `ip -batch` takes commands without the program's name. */
const batchOf = (lines: readonly string[]) => lines.map((line) => `${line.replace(/^ip (-6 )?/, '')}\n`).join('');

for (const [name, tunnel] of samples) {
  const text = iproute2.write(tunnel);
  const lines = text.split('\n');
  const devices = lines.filter((line) => line.startsWith('ip link add '));
  const rest = lines.filter((line) => line.startsWith('ip ') && !devices.includes(line));
  const options = { skip: without('ip', 'iproute2') };

  test(`ip reads every option of the devices of ${name}`, options, () => {
    const file = join(folder, `${name}.devices`);
    writeFileSync(file, batchOf(devices));
    const { stderr } = inNamespace(`ip -force -batch ${file}`);
    // The kernel's word: ip has sent it the request. What ip cannot read ends in "Garbage" or its usage, and is not sent.
    const unsent = stderr
      .split('\n')
      .filter((line) => !/^(Error: Unknown device type\.|Command failed .*:\d+|)$/.test(line));
    assert.deepEqual(unsent, []);
  });

  test(`ip and nft carry out all the rest of ${name}`, options, () => {
    const [v4, v6] = [join(folder, `${name}.v4`), join(folder, `${name}.v6`)];
    writeFileSync(v4, batchOf(rest.filter((line) => !line.startsWith('ip -6 '))));
    writeFileSync(v6, batchOf(rest.filter((line) => line.startsWith('ip -6 '))));
    const nft = join(folder, `${name}.nft`);
    writeFileSync(nft, clampOf(text));
    const standIns = tunnel.ends.map((end, at) => `ip link add ${deviceName(end)} type veth peer name peer${at}`);
    // The clamp twice: a second paste replaces the first.
    const steps = [...standIns, `ip -batch ${v4}`, `ip -6 -batch ${v6}`, `nft -f ${nft}`, `nft -f ${nft}`];
    const show = ['ip rule', 'ip -6 rule', 'nft list tables'];
    const { status, stderr, stdout } = inNamespace([...steps, ...show].join(' && '));
    assert.deepEqual([status, stderr], [0, '']);
    for (const { family, length } of tunnel.ips) {
      const sources = family === 4 ? (length === 32 ? '203.0.113.77' : '203.0.113.0/28') : '2001:db8:7::/48';
      assert.match(stdout, new RegExp(`1000:\\s+from ${sources} lookup main suppress_prefixlength 0`));
      assert.match(stdout, new RegExp(`1001:\\s+from ${sources} lookup 10041`));
    }
    assert.equal(stdout.match(/table inet levee_41$/gm)?.length, 1);
  });
}

test('what ip cannot read is told apart from what the kernel lacks', { skip: without('ip', 'iproute2') }, () => {
  const file = join(folder, 'misspelt');
  writeFileSync(file, 'link add name lv1 type gre local 198.51.100.9 remoot 192.0.2.1\n');
  assert.match(inNamespace(`ip -force -batch ${file}`).stderr, /Usage|Garbage/);
});

/** Of a shell text: what stands between a here-document's marks, by what it is given to. */
function documentsOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, command = '', body = ''] of text.matchAll(/^(.*) <<'EOF'\n([\s\S]*?\n)EOF$/gm))
    found.set(command, body);
  return found;
}

function clampOf(text: string): string {
  const clamp = documentsOf(text).get('nft -f -');
  assert.ok(clamp);
  return clamp;
}

/** What systemd-networkd says of the files, until it has read them all. */
async function readByNetworkd(files: ReadonlyMap<string, string>): Promise<string> {
  const place = readable(mkdtempSync(join(folder, 'networkd-')));
  for (const [path, body] of files) writeFileSync(join(place, path), body);
  const script = `mount --bind ${place} /etc/systemd/network && mount -t tmpfs none /run/systemd && exec ${networkd}`;
  const child = spawn('unshare', ['--net', '--mount', 'sh', '-c', script], {
    env: { ...process.env, SYSTEMD_LOG_LEVEL: 'debug', SYSTEMD_LOG_TARGET: 'console', SYSTEMD_LOG_COLOR: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8');
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const patience = setTimeout(() => child.kill('SIGKILL'), 20_000);
  child.stderr.on('data', (part: string) => {
    said += part;
    if (said.includes('Enumeration completed')) child.kill('SIGKILL');
  });
  await ended;
  clearTimeout(patience);
  assert.match(said, /Enumeration completed/);
  return said;
}

const complaints = (said: string) => said.split('\n').filter((line) => line.startsWith('/etc/systemd/network/'));

const networkdOptions = { skip: notRoot || (!existsSync(networkd) && 'systemd is not installed') };

test('systemd-networkd reads every file of every tunnel without a word', networkdOptions, async () => {
  for (const [name, tunnel] of samples) {
    const documents = documentsOf(systemdNetworkd.write(tunnel));
    const files = new Map<string, string>();
    for (const [command, body] of documents) {
      const path = /^cat > \/etc\/systemd\/network\/(\S+)$/.exec(command)?.[1];
      if (path !== undefined) files.set(path, body);
    }
    assert.equal(files.size, 2 * tunnel.ends.length);
    const said = await readByNetworkd(files);
    assert.deepEqual(complaints(said), [], name);
    for (const end of tunnel.ends) assert.ok(said.includes(`${deviceName(end)}: loaded "${kindOf(tunnel)}"`), said);
  }
});

test('systemd-networkd complains of what it cannot read', networkdOptions, async () => {
  const netdev = '[NetDev]\nName=lv1\nKind=gre\n[Tunnel]\nLokal=198.51.100.9\n';
  const network = '[Match]\nName=lv1\n[RoutingPolicyRule]\nFrom=203.0.113.0/40\n';
  const said = await readByNetworkd(new Map(Object.entries({ '50-lv1.netdev': netdev, '50-lv1.network': network })));
  assert.deepEqual(
    complaints(said).map((line) => line.split(':')[0]),
    ['/etc/systemd/network/50-lv1.netdev', '/etc/systemd/network/50-lv1.network'],
  );
});

function kindOf({ type, outer }: ConfigTunnel): string {
  return type === 'Geneve' ? 'geneve' : outer === 4 ? 'gre' : 'ip6gre';
}

function generate(name: string, yaml: string): { status: number | null; stderr: string; root: string } {
  const root = mkdtempSync(join(folder, `netplan-${name}-`));
  mkdirSync(join(root, 'etc', 'netplan'), { recursive: true });
  writeFileSync(join(root, 'etc', 'netplan', '60-levee-41.yaml'), yaml, { mode: 0o600 });
  const { status, stderr } = spawnSync('netplan', ['generate', '--root-dir', root], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { status, stderr, root };
}

const netplanOptions = { skip: spawnSync('netplan', ['--help']).status !== 0 && 'netplan.io is not installed' };

test('netplan makes of each file the devices, routes and rules that it stands for', netplanOptions, () => {
  for (const [name, tunnel] of samples) {
    if (netplan.lacks(tunnel) !== undefined) continue;
    const { status, stderr, root } = generate(name, netplan.write(tunnel));
    assert.deepEqual([status, stderr], [0, ''], name);
    for (const end of tunnel.ends) {
      const path = join(root, 'run', 'systemd', 'network', `10-netplan-${deviceName(end)}`);
      const netdev = readFileSync(`${path}.netdev`, 'utf8');
      const values = [`Kind=${kindOf(tunnel)}`, `Local=${tunnel.endpoint}`, `Remote=${end.address}`, 'TTL=64'];
      if (tunnel.keyed) values.push(`InputKey=${end.number}`, `OutputKey=${end.number}`);
      for (const value of values) assert.ok(netdev.includes(`${value}\n`), `${name}: ${value}\n${netdev}`);
      const network = readFileSync(`${path}.network`, 'utf8');
      assert.ok(network.includes(`Address=${end.inner4.customer}/31\n`) && network.includes('Table=10041\n'), network);
      const rules = end.order === 0 ? 2 * tunnel.ips.length : 0;
      assert.equal(network.match(/^\[RoutingPolicyRule\]$/gm)?.length ?? 0, rules, name);
    }
  }
});

test('netplan refuses what it cannot read', netplanOptions, () => {
  const broken = netplan.write(sampleTunnels['gre-v4'] as ConfigTunnel).replace('mode: gre', 'mode: geneve');
  const { status, stderr } = generate('broken', broken);
  assert.notEqual(status, 0);
  assert.match(stderr, /geneve/);
});
