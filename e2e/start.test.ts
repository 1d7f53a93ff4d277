/**
 * Guarantees of a first start: from nothing to a packet dropped in the kernel by the interface alone; and that Levee
 * says so, in one line and in every rule, when it cannot enforce anything.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe } from './packet-probe.ts';
import { isAlive, RunningLevee, until } from './running-levee.ts';

const noLab = labObstacle();
const prefixes = ['203.0.113.0/24', '2001:db8::/32'];
const guarded = '203.0.113.10';
const open = '203.0.113.20';

describe('as root with nftables', { skip: noLab ?? false }, () => {
  const data = mkdtempSync(join(tmpdir(), `levee-start-${process.pid}-`));
  after(() => rmSync(data, { recursive: true, force: true }));

  test('a rule posted to a fresh installation drops real packets; it outlives restarts; its end lets them through', async () => {
    using path = new RouterPath({ protectedPrefixes: prefixes, label: 'start' });
    using probe = new PacketProbe(path);
    const place = { dataDirectory: data, environment: { LEVEE_EDGE_NETNS: path.router.name } };
    assert.ok(await probe.passes(guarded, open), 'before Levee, everything passes');

    const levee = await RunningLevee.start(place);
    let rule: { uuid: string };
    let userKey: string;
    try {
      assert.deepEqual(levee.summary.enforcement.mode, 'kernel', JSON.stringify(levee.summary));
      assert.equal(levee.summary.operator_key, levee.operatorKey);
      assert.equal(statSync(join(data, 'operator.key')).mode & 0o777, 0o600);
      assert.equal(statSync(data).mode & 0o077, 0, 'the data directory is closed to others');

      const provider = await levee.createProvider('Example Hosting', prefixes);
      const account = {
        username: 'alice',
        email: 'alice@example.net',
        password: 'correct horse 7 battery',
        name: 'Alice',
      };
      const user = await levee.good('POST', '/user', provider.key, { ...account, ips: ['203.0.113.0/28'] });
      const made = await levee.good('POST', '/api-key', provider.key, { account_uuid: user.uuid, name: 'first' });
      userKey = made.key;

      const fields = { dst: guarded, protocol: 'udp', action: 'drop' };
      rule = await levee.good('POST', '/firewall/rule', userKey, fields, { prefer: 'wait=20' });
      const [read] = await levee.good('GET', `/firewall/rule/${rule.uuid}`, userKey);
      assert.equal(read.state, 'active', JSON.stringify(read));
      assert.equal(read.applied.length, 1);
      assert.deepEqual([...(await probe.reach([guarded, open], open))], [open], 'active means: the kernel drops it');
    } finally {
      assert.equal(await levee.stop(), 0, levee.stderr);
    }
    assert.ok(!(await probe.passes(guarded, open)), 'stopping Levee opens nothing');

    const again = await RunningLevee.start(place);
    try {
      assert.equal(again.summary.operator_key, undefined, 'the operator key is printed once');
      assert.ok(!(await probe.passes(guarded, open)), 'starting Levee again opens nothing');
      await until('the rule to be active again', 20_000, async () => {
        const [read] = await again.good('GET', `/firewall/rule/${rule.uuid}`, userKey);
        return read.state === 'active';
      });
      await again.good('DELETE', `/firewall/rule/${rule.uuid}`, userKey, undefined, { prefer: 'wait=20' });
      assert.ok(await probe.passes(guarded, open), 'a deleted rule drops nothing');
      await until('the deleted rule to be gone', 20_000, async () => {
        return (await again.request('GET', `/firewall/rule/${rule.uuid}`, userKey)).status === 404;
      });
    } finally {
      assert.equal(await again.stop(), 0, again.stderr);
    }
  });

  test('a supervisor that is killed leaves no process behind, and the next start works', async () => {
    using path = new RouterPath({ protectedPrefixes: prefixes, label: 'kill' });
    const place = { dataDirectory: data, environment: { LEVEE_EDGE_NETNS: path.router.name } };
    const levee = await RunningLevee.start(place);
    const { control, edge } = levee.processes;
    assert.ok(control !== undefined && edge !== undefined);
    levee.kill();
    await until('both children to end by themselves', 30_000, () => !isAlive(control) && !isAlive(edge));
    await levee.stop();
    const again = await RunningLevee.start(place);
    assert.equal(again.summary.enforcement.mode, 'kernel');
    assert.equal(await again.stop(), 0, again.stderr);
  });
});

test('when the database is replaced, nothing of the old installation stays, and nothing of the new one is missing', {
  skip: noLab ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: prefixes, label: 'replaced' });
  using probe = new PacketProbe(path);
  const data = mkdtempSync(join(tmpdir(), `levee-replaced-${process.pid}-`));
  const start = (more = {}) =>
    RunningLevee.start({ dataDirectory: data, environment: { LEVEE_EDGE_NETNS: path.router.name, ...more } });
  const drop = (dst: string) => ({ dst, protocol: 'udp', action: 'drop' });
  try {
    const old = await start();
    const before = await old.createProvider('Before', prefixes);
    await old.good('POST', '/firewall/rule', before.key, drop(guarded), { prefer: 'wait=20' });
    await old.stop();
    assert.ok(!(await probe.passes(guarded, open)));

    for (const name of ['postgres', 'operator.key']) rmSync(join(data, name), { recursive: true });
    // The edge is away while the new log grows past the place that it knows of the old one.
    const made: string[] = [];
    const alone = await start({ LEVEE_EDGE_DRIVER: 'off' });
    const { key } = await alone.createProvider('After', prefixes);
    for (let host = 100; host < 160; host++) {
      made.push(`203.0.113.${host}`);
      await alone.good('POST', '/firewall/rule', key, drop(`203.0.113.${host}`));
    }
    await alone.stop();
    const levee = await start();
    try {
      await until('all rules to be active', 20_000, async () => {
        const rules = await levee.good('GET', '/firewall/rule', key);
        return rules.length === made.length && rules.every((rule: { state: string }) => rule.state === 'active');
      });
      assert.deepEqual([...(await probe.reach([...made, guarded], open))], [guarded]);
    } finally {
      await levee.stop();
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});

const nobody = 65_534;
const uid = process.getuid?.() === 0 ? nobody : undefined;

function othersCanReadUs(): boolean {
  if (uid === undefined) return true;
  for (let folder = import.meta.dirname; ; folder = join(folder, '..')) {
    if ((statSync(folder).mode & 0o005) !== 0o005) return false;
    if (folder === '/') return true;
  }
}

describe('without root', { skip: othersCanReadUs() ? false : 'this folder is closed to other users' }, () => {
  test('it starts, says in one line that nothing is enforced and why, and so does every rule', async () => {
    const people = await RunningLevee.startForPeople(uid === undefined ? {} : { uid });
    try {
      const lines = people.stdout.split('\n').filter((line) => line.includes('NOTHING IS ENFORCED'));
      assert.equal(lines.length, 1, people.stdout);
      assert.match(lines[0] ?? '', /NOTHING IS ENFORCED: .*root/);
      assert.match(people.stdout, /operator key +lv_o_/);
    } finally {
      assert.equal(await people.stop(), 0, people.stderr);
    }

    const levee = await RunningLevee.start(uid === undefined ? {} : { uid });
    try {
      const { mode, reason } = levee.summary.enforcement;
      assert.equal(mode, 'dry');
      const provider = await levee.createProvider('Example Hosting', prefixes);
      const fields = { dst: guarded, protocol: 'udp', action: 'drop' };
      const rule = await levee.good('POST', '/firewall/rule', provider.key, fields, { prefer: 'wait=2' });
      await until('the reason to be told', 20_000, async () => {
        const [read] = await levee.good('GET', `/firewall/rule/${rule.uuid}`, provider.key);
        assert.equal(read.state, 'pending', 'a rule that no kernel holds is never active');
        return read.state_reason === reason || String(read.state_reason).includes(String(reason));
      });
    } finally {
      assert.equal(await levee.stop(), 0, levee.stderr);
    }
  });
});
