import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { openDatabase } from '../database.ts';
import { waitUntil } from '../testing/wait-until.ts';
import { findBinaries } from './binaries.ts';
import { startEmbedded } from './embedded-postgres.ts';
import { chooseIdentity } from './identity.ts';
import { stopLeftovers } from './ownership.ts';
import { liveProcess, postgresProcessesIn } from './process-table.ts';

const asRoot = process.geteuid?.() === 0;
const PLAIN = 65534;
const script = join(import.meta.dirname, 'testing', 'run-embedded.ts');
const folders: string[] = [];
const children: ChildProcess[] = [];

after(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders) {
    const data = join(folder, 'postgres', 'data');
    if (existsSync(data)) await stopLeftovers(realpathSync(data), 500);
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Mode 0700 and ours, so that the user to which PostgreSQL drops has no way in. */
function folder(owner?: number): string {
  const path = mkdtempSync(join(tmpdir(), `levee-embedded-${process.pid}-`));
  folders.push(path);
  if (owner !== undefined) chownSync(path, owner, owner);
  return path;
}

interface Line {
  readonly ok: boolean;
  readonly message?: string;
  readonly pid: number;
  readonly listening: string;
  readonly fsync: string;
  readonly checksums: string;
  readonly kept: number;
}

/** Where the sources lie in a folder closed to others, the plain user may read everything, and still write nothing. */
function plainUser(): string[] {
  const user = ['setpriv', '--reuid', String(PLAIN), '--regid', String(PLAIN), '--clear-groups'];
  const reads = ['--inh-caps', '+dac_read_search', '--ambient-caps', '+dac_read_search'];
  const canRead = spawnSync(user[0] as string, [...user.slice(1), process.execPath, '-p', '1']).status === 0;
  const canReadScript = spawnSync(user[0] as string, [...user.slice(1), 'cat', script]).status === 0;
  return canRead && canReadScript ? user : [...user, ...reads];
}

async function run(
  dataDirectory: string,
  prefix: readonly string[] = [],
): Promise<{ child: ChildProcess; line: Line }> {
  const [file = '', ...args] = [...prefix, process.execPath, script, dataDirectory];
  const child = spawn(file, args, { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await once(lines, 'line')) as [string];
  return { child, line: JSON.parse(line) };
}

function uidOf(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

async function exercise(prefix: readonly string[], owner: number | undefined): Promise<void> {
  // Far beyond the 107 bytes that a socket's path may have.
  const deep = join(folder(owner), 'x'.repeat(60), 'y'.repeat(60));
  mkdirSync(deep, { recursive: true, mode: 0o700 });
  if (owner !== undefined) {
    chownSync(join(deep, '..'), owner, owner);
    chownSync(deep, owner, owner);
  }
  const data = join(deep, 'postgres', 'data');
  const first = await run(deep, prefix);
  assert.equal(first.line.ok, true, first.line.message);
  assert.deepEqual([first.line.listening, first.line.fsync, first.line.checksums], ['', 'on', 'on']);
  assert.equal(first.line.kept, 1);
  assert.notEqual(uidOf(first.line.pid), 0);
  assert.equal(statSync(data).uid, uidOf(first.line.pid));
  for (const path of [data, join(deep, 'postgres', 'socket'), join(deep, 'postgres')]) {
    assert.equal(statSync(path).mode & 0o777, 0o700, path);
  }

  const second = await run(deep, prefix);
  assert.equal(second.line.ok, false);
  assert.match(second.line.message ?? '', new RegExp(`process ${first.child.pid} already runs`));

  first.child.kill('SIGKILL');
  await waitUntil(() => postgresProcessesIn(realpathSync(data)).length === 0, 'PostgreSQL following its parent');
  const third = await run(deep, prefix);
  assert.equal(third.line.kept, 2, third.line.message);

  third.child.kill('SIGTERM');
  await once(third.child, 'exit');
  assert.deepEqual(postgresProcessesIn(realpathSync(data)), []);
  assert.equal(existsSync(join(deep, 'postgres', 'owner.json')), false);
}

test('as root: PostgreSQL runs unprivileged in folders closed to it, dies with its parent, and keeps what was committed', {
  skip: !asRoot && 'not run as root',
}, async () => {
  await exercise([], undefined);
});

test('as a plain user: the same', async () => {
  if (asRoot) await exercise(plainUser(), PLAIN);
  else await exercise([], undefined);
});

test('a data directory of another user is refused with both uids', { skip: !asRoot && 'not run as root' }, async () => {
  const path = folder(PLAIN);
  mkdirSync(join(path, 'postgres', 'data'), { recursive: true, mode: 0o700 });
  chownSync(join(path, 'postgres'), PLAIN, PLAIN);
  chownSync(join(path, 'postgres', 'data'), 1, 1);
  const { line } = await run(path, plainUser());
  assert.equal(line.ok, false);
  assert.match(line.message ?? '', /belongs to uid 1 and Levee runs as uid 65534/);
});

test('a PostgreSQL that outlived its killed parent is ended before the next one starts', async () => {
  const path = folder();
  const first = await run(path);
  assert.equal(first.line.ok, true, first.line.message);
  // Stopped, it cannot follow its parent.
  process.kill(first.line.pid, 'SIGSTOP');
  first.child.kill('SIGKILL');
  await waitUntil(() => liveProcess(first.child.pid as number) === undefined, 'the parent being gone');
  const data = realpathSync(join(path, 'postgres', 'data'));
  assert.ok(postgresProcessesIn(data).includes(first.line.pid));
  assert.ok((await stopLeftovers(data, 200)) > 0);
  assert.deepEqual(postgresProcessesIn(data), []);
  const second = await run(path);
  assert.equal(second.line.kept, 2, second.line.message);
  second.child.kill('SIGKILL');
});

test('a lock file that names a process which is no PostgreSQL does not prevent the start', async () => {
  const path = folder();
  const first = await run(path);
  first.child.kill('SIGKILL');
  const data = realpathSync(join(path, 'postgres', 'data'));
  await waitUntil(() => postgresProcessesIn(data).length === 0, 'PostgreSQL following its parent');
  const other = spawn('sleep', ['60'], { ...(asRoot && { uid: statSync(data).uid, gid: statSync(data).gid }) });
  children.push(other);
  writeFileSync(join(data, 'postmaster.pid'), `${other.pid}\n${data}\n1\n5432\n\n\n0 0\n`);
  const second = await run(path);
  assert.equal(second.line.kept, 2, second.line.message);
  second.child.kill('SIGKILL');
  assert.notEqual(liveProcess(other.pid as number), undefined, 'the other process was left alone');
  other.kill();
});

test('a killed PostgreSQL is started again, nothing committed is lost, and connections come back by themselves', async () => {
  const said: string[] = [];
  const started = await startEmbedded({ dataDirectory: folder(), log: (text) => said.push(text) });
  assert.ok(started.ok);
  const { postgres } = started;
  const database = openDatabase(postgres.address, { maxConnections: 4 });
  try {
    await database.pool.query('create table kept (number integer)');
    let acknowledged = 0;
    let stop = false;
    const writer = (async () => {
      for (let number = 1; !stop; number++) {
        const done = await database.pool.query('insert into kept values ($1)', [number]).then(
          () => true,
          () => false,
        );
        if (done) acknowledged++;
      }
    })();
    for (let round = 1; round <= 3; round++) {
      const before = acknowledged;
      await waitUntil(() => acknowledged > before + 5, 'writes');
      process.kill(postgres.pid, 'SIGKILL');
      await waitUntil(() => postgres.restarts === round, 'the restart');
      const after_ = acknowledged;
      await waitUntil(() => acknowledged > after_ + 5, 'writes after the restart', 30_000);
    }
    stop = true;
    await writer;
    const { rows } = await database.pool.query('select count(*) as count from kept');
    assert.ok(rows[0].count >= acknowledged, `${rows[0].count} of ${acknowledged}`);
    assert.equal(said.filter((text) => text.includes('SIGKILL')).length, 3);
  } finally {
    await database.close();
    await postgres.stop();
  }
});

test('stopping does not wait for clients, and may be asked twice', async () => {
  const path = folder();
  const started = await startEmbedded({ dataDirectory: path, durable: false });
  assert.ok(started.ok);
  const database = openDatabase(started.postgres.address);
  const client = await database.connect('busy');
  const busy = client.query('select pg_sleep(60)').then(
    () => 'slept',
    () => 'ended',
  );
  const startedAt = Date.now();
  await Promise.all([started.postgres.stop(), started.postgres.stop()]);
  assert.ok(Date.now() - startedAt < 10_000);
  assert.equal(await busy, 'ended');
  await client.end().catch(() => {});
  await database.close();
});

test('what makes it impossible is said, and does not keep the next try from working', async () => {
  const path = folder();
  const none = await startEmbedded({ dataDirectory: path, search: { path: '', versionedRoots: [] } });
  assert.equal(none.ok, false);
  assert.match(none.ok ? '' : none.message, /PostgreSQL 15 or newer is needed.*DATABASE_URL/);
  const broken = await startEmbedded({ dataDirectory: path, durable: false, settings: { shared_buffers: 'much' } });
  assert.match(broken.ok ? '' : broken.message, /shared_buffers/);
  const good = await startEmbedded({ dataDirectory: path, durable: false });
  assert.ok(good.ok);
  await good.postgres.stop();
  writeFileSync(join(path, 'postgres', 'data', 'PG_VERSION'), '14\n');
  const old = await startEmbedded({ dataDirectory: path });
  assert.match(old.ok ? '' : old.message, /made by PostgreSQL 14.*pg_upgrade/);
});

test('the newest version that is installed is taken, and for existing data its own', () => {
  const root = folder();
  for (const version of ['14', '15', '17']) {
    const bin = join(root, version, 'bin');
    mkdirSync(bin, { recursive: true });
    for (const program of ['postgres', 'initdb']) {
      writeFileSync(join(bin, program), `#!/bin/sh\necho "postgres (PostgreSQL) ${version}.3"\n`, { mode: 0o755 });
    }
  }
  const search = { path: '', versionedRoots: [root] };
  const major = (data?: number) => {
    const found = findBinaries(data, search);
    return found.ok ? found.binaries.major : found.message;
  };
  assert.equal(major(), 17);
  assert.equal(major(15), 15);
  assert.match(String(major(16)), /made by PostgreSQL 16, found 17 in .*, 15 in/);
  assert.equal(findBinaries(undefined, { path: join(root, '15', 'bin'), versionedRoots: [root] }).ok, true);
});

test('as whom PostgreSQL runs', () => {
  const passwd = 'root:x:0:0::/:/x\npostgres:x:101:104::/:/x\nnobody:x:65534:65534::/:/x\n';
  const root = { uid: 0, gid: 0 };
  const identity = (
    owner: { uid: number; gid: number } | undefined,
    self: { uid: number; gid: number },
    file = passwd,
  ) => {
    const chosen = chooseIdentity(owner, self, file);
    return chosen.ok ? chosen.identity : chosen.message;
  };
  assert.deepEqual(identity(undefined, root), { uid: 101, gid: 104, drop: true });
  assert.deepEqual(identity(undefined, root, `${passwd}levee:x:900:901::/:/x\n`), { uid: 900, gid: 901, drop: true });
  assert.deepEqual(identity({ uid: 7, gid: 8 }, root), { uid: 7, gid: 8, drop: true });
  assert.deepEqual(identity(undefined, { uid: 5, gid: 6 }), { uid: 5, gid: 6, drop: false });
  assert.match(String(identity({ uid: 7, gid: 8 }, { uid: 5, gid: 6 })), /belongs to uid 7/);
  assert.match(String(identity(undefined, root, 'root:x:0:0::/:/x\n')), /does not run as root/);
});
