/**
 * Guarantees for two control planes on one PostgreSQL of which one stands still without dying (SIGSTOP): each a process
 * of its own, with a real gobgpd. What the one led the other leads, and there is one leader again when it goes on.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { openSse, type SseClient } from '@levee/server/events/testing/sse-client.ts';
import { propose } from '@levee/server/http/testing/propose.ts';
import type { Database } from '@levee/server/store/database.ts';
import { startTestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { program, until } from './running-levee.ts';

interface Replica {
  readonly child: ChildProcess;
  readonly name: string;
  address: string;
  operatorKey: string | undefined;
}

const ends: (() => unknown)[] = [];
const children = new Set<ChildProcess>();
/** A process that stands still is killed all the same. */
const kill = () => {
  for (const child of children) child.kill('SIGKILL');
};
process.on('exit', kill);
after(async () => {
  const closed = [...children].map((child) => once(child, 'close'));
  kill();
  await Promise.all(closed);
  for (const end of ends.reverse()) await end();
});

/** `name`: shown in its sessions, so that it is seen who leads. */
async function startReplica(name: string, database: Database, gobgp: string): Promise<Replica> {
  const folder = mkdtempSync(join(tmpdir(), `levee-hung-${process.pid}-`));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  assert.ok('socketDirectory' in database.address);
  const { user, socketDirectory, database: stored } = database.address;
  const child = spawn(process.execPath, [program, '-o', 'json', 'serve', '--no-config'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      DATABASE_URL: `postgresql://${user}@/${stored}?host=${encodeURIComponent(socketDirectory.replace('/self/', `/${process.pid}/`))}`,
      LEVEE_LISTEN: '127.0.0.1:0',
      LEVEE_DNS_LISTEN: 'off',
      LEVEE_DATA_DIR: folder,
      LEVEE_GOBGP: gobgp,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  child.once('close', () => children.delete(child));
  const replica: Replica = { child, name, address: '', operatorKey: undefined };
  let said = '';
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until(`${name} to serve`, 30_000, () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${errors}`);
    return /^\{.*\}$/m.test(said);
  });
  const summary = JSON.parse(/^\{.*\}$/m.exec(said)?.[0] ?? '{}');
  replica.address = summary.address;
  replica.operatorKey = summary.operator_key;
  return replica;
}

const told = (stream: SseClient, uuid: string) =>
  stream.messages.filter(({ data }) => data.data?.uuid === uuid).map(({ event }) => event);

test('what a replica led that stands still is led by the other within 10 s; when it goes on it leads nothing, and nothing is told twice', async (context) => {
  const postgres = await startTestPostgres();
  ends.push(() => postgres.stop());
  const database = await postgres.createDatabase();
  const gobgpd = await startGobgpd({ neighbors: [] });
  ends.push(() => gobgpd.remove());
  const first = await startReplica('first', database, gobgpd.target);
  const leaders = async () =>
    (
      await database.pool.query<{ name: string; pid: number }>(
        `select distinct a.application_name as name, a.pid from pg_locks l join pg_stat_activity a on a.pid = l.pid
          where l.locktype = 'advisory' and l.granted and a.application_name in ('levee events', 'levee bgp')
            and a.datname = current_database() order by 1`,
      )
    ).rows;
  await until('the first leads', 10_000, async () => (await leaders()).length === 2);
  const sessions = await leaders();
  const second = await startReplica('second', database, gobgpd.target);
  const key = first.operatorKey ?? '';
  const good = async (path: string, body: object) => {
    const response = await fetch(`${second.address}/v1${path}`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
  };
  await good('/operator/provider', { name: 'Example', prefixes: ['198.51.100.0/24'] });
  const stream = await openSse(second.address, key);
  ends.push(() => stream.close());
  const routes = () =>
    execFileSync('gobgp', ['--target', gobgpd.target, 'global', 'rib', '-a', 'ipv4-flowspec'], { encoding: 'utf8' })
      .match(/198\.51\.100\.\d/g)
      ?.sort();

  const before = await propose(database.pool, '198.51.100.1');
  await until('all is well', 10_000, () => told(stream, before.uuid).includes('flowrule.active'));
  first.child.kill('SIGSTOP');
  await delay(4_500);
  first.child.kill('SIGCONT');
  const busy = await propose(database.pool, '198.51.100.4');
  await until('it goes on', 10_000, () => told(stream, busy.uuid).includes('flowrule.active'));
  assert.deepEqual(await leaders(), sessions, 'who was busy for less than five seconds still leads');

  first.child.kill('SIGSTOP');
  const stoppedAt = Date.now();
  const during = await propose(database.pool, '198.51.100.2');
  await until('the second leads', 20_000, () => told(stream, during.uuid).includes('flowrule.active'));
  const ledAfter = Date.now() - stoppedAt;
  assert.ok(ledAfter < 10_000, `${ledAfter} ms`);
  context.diagnostic(`led by the other after ${ledAfter} ms`);
  const now = await leaders();
  assert.equal(now.length, 2);
  for (const { pid } of sessions) assert.ok(!now.some((each) => each.pid === pid));

  first.child.kill('SIGCONT');
  const answers = () =>
    fetch(`${first.address}/v1/health`, { signal: AbortSignal.timeout(1_000) }).then(
      () => true,
      () => false,
    );
  await until('the first answers', 10_000, answers);
  const afterwards = await propose(database.pool, '198.51.100.3');
  await until('news', 10_000, () => told(stream, afterwards.uuid).includes('flowrule.active'));
  assert.deepEqual(await leaders(), now);
  for (const { uuid } of [before, busy, during, afterwards]) {
    const names = told(stream, uuid);
    // That it was pending is not told by who found it active already.
    assert.equal(names.at(-1), 'flowrule.active');
    assert.equal(new Set(names).size, names.length, names.join());
  }
  assert.deepEqual(routes(), ['198.51.100.1', '198.51.100.2', '198.51.100.3', '198.51.100.4']);
});
