/**
 * Guarantees to who runs a router by hand: the token works once, the edge follows the control plane from its own
 * namespace, and without the control plane it comes back with the rules it knew.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe } from './packet-probe.ts';
import { program, RunningLevee, until } from './running-levee.ts';

const prefix = '203.0.113.0/24';
const guarded = '203.0.113.10';
const open = '203.0.113.20';

/** `levee edge` inside a namespace, up when it has said what it enforces. */
async function startEdge(namespace: string, args: readonly string[]): Promise<{ child: ChildProcess; said: string }> {
  const command = ['netns', 'exec', namespace, process.execPath, program, '-o', 'json', 'edge', '--no-config', ...args];
  const child = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: process.env.PATH } });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until('the edge to be up', 30_000, () => {
    if (child.exitCode !== null) throw new Error(`levee edge ended with ${child.exitCode}`);
    return said.includes('\n');
  });
  return { child, said };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

test('a router enrols once by its token, enforces, and restarts with its rules while the control plane is away', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'router' });
  using probe = new PacketProbe(path);
  const state = mkdtempSync(join(tmpdir(), `levee-router-${process.pid}-`));
  const data = mkdtempSync(join(tmpdir(), `levee-control-${process.pid}-`));
  const levee = await RunningLevee.start({ dataDirectory: data, environment: { LEVEE_EDGE_DRIVER: 'off' } });
  const edges: ChildProcess[] = [];
  try {
    assert.equal(levee.summary.enforcement.mode, 'off');
    const operator = levee.operatorKey;
    await levee.good('POST', '/operator/location', operator, { name: 'fra1' });
    const router = await levee.good('POST', '/operator/router', operator, {
      name: 'edge-1',
      location: 'fra1',
      tunnel_addresses: ['192.0.2.1', '2001:db8:ffff::1'],
    });
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const rule = await levee.good('POST', '/firewall/rule', key, { dst: guarded, protocol: 'udp', action: 'drop' });
    assert.equal(rule.state, 'pending');
    assert.ok(await probe.passes(guarded, open));

    const token = router.enrollment_token;
    const place = ['--edge-control', levee.summary.address, '--edge-state-dir', state];
    const enroll = () =>
      execFileSync(
        process.execPath,
        [program, '-o', 'json', 'router', 'enroll', '--no-config', String(token), ...place],
        {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { PATH: process.env.PATH },
        },
      );
    const enrolled = JSON.parse(enroll());
    assert.deepEqual([enrolled.name, enrolled.location], ['edge-1', 'fra1']);
    assert.equal(statSync(enrolled.key_file).mode & 0o777, 0o600);
    const firstKey = readFileSync(enrolled.key_file, 'utf8');
    assert.throws(enroll, /Command failed/, 'a token works once');
    assert.equal(readFileSync(enrolled.key_file, 'utf8'), firstKey, 'and the key stays');

    // From inside the namespace, the control plane's loopback is out of reach; its socket is not.
    const follow = ['--edge-control', `unix:${join(data, 'control.sock')}`, '--edge-state-dir', state];
    const first = await startEdge(path.router.name, follow);
    edges.push(first.child);
    assert.equal(JSON.parse(first.said).enforcement.mode, 'kernel');
    await until('the rule to be active', 20_000, async () => {
      const [read] = await levee.good('GET', `/firewall/rule/${rule.uuid}`, key);
      return read.state === 'active' && read.applied[0].router === 'edge-1' && read.applied[0].location === 'fra1';
    });
    assert.ok(!(await probe.passes(guarded, open)));

    await levee.stop();
    await end(first.child, 'SIGKILL');
    assert.ok(!(await probe.passes(guarded, open)), 'a killed edge opens nothing');
    path.router.run('nft', ['delete', 'table', 'inet', 'levee']);
    assert.ok(await probe.passes(guarded, open), 'as after a reboot of the router');
    const second = await startEdge(path.router.name, follow);
    edges.push(second.child);
    assert.ok(!(await probe.passes(guarded, open)), 'an edge without a control plane enforces what it knew');
    await end(second.child, 'SIGTERM');
    assert.equal(second.child.exitCode, 0);
    assert.ok(!(await probe.passes(guarded, open)), 'an edge that was stopped opens nothing');
  } finally {
    await levee.stop();
    for (const child of edges) await end(child, 'SIGKILL');
    for (const folder of [state, data]) rmSync(folder, { recursive: true, force: true });
  }
});
