/** Guarantees of the command line, each held by running the real command in a process of its own. */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { settingEntries } from './config/settings.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-program-${process.pid}-`));
after(() => rmSync(folder, { recursive: true, force: true }));

function levee(args: readonly string[], environment: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(LEVEE_|DATABASE_URL)/.test(name)),
  );
  return spawnSync(process.execPath, [join(import.meta.dirname, 'levee.ts'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...clean, ...environment },
    timeout: 30_000,
  });
}

test('--help lists every setting with its variable', () => {
  const { stdout, status } = levee(['--help']);
  assert.equal(status, 0);
  for (const [, setting] of settingEntries) assert.match(stdout, new RegExp(`^ +${setting.environment} `, 'm'));
});

test('an unknown command, an unknown option and a missing argument fail on standard error', () => {
  for (const args of [['unp'], ['up', '--lisen', 'x'], ['router', 'enroll'], ['-o', 'xml', 'config', 'check']]) {
    const { stdout, stderr, status } = levee(args);
    assert.equal(status, 1, args.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, /^error: /m);
  }
});

test('config check prints each value with its source and hides secrets, as text and as JSON', () => {
  const path = join(folder, 'check.toml');
  writeFileSync(path, 'log_level = "info"\n');
  const environment = { DATABASE_URL: 'postgres://levee:hunter2@db/levee', LEVEE_EDGE_NETNS: 'blue' };
  const args = ['config', 'check', '--config', path, '--listen', '127.0.0.1:9'];
  const text = levee(args, environment);
  assert.equal(text.status, 0, text.stderr);
  assert.match(text.stdout, /^LEVEE_LISTEN +127\.0\.0\.1:9 {2}\(command line\)$/m);
  assert.match(text.stdout, /^LEVEE_EDGE_NETNS +blue {2}\(environment\)$/m);
  assert.match(text.stdout, /^LEVEE_LOG_LEVEL +info {2}\(.*check\.toml\)$/m);
  assert.match(text.stdout, /^DATABASE_URL +set, not shown {2}\(environment\)$/m);
  const json = JSON.parse(levee([...args, '-o', 'json'], environment).stdout);
  assert.deepEqual(json.settings.LEVEE_LISTEN, { value: '127.0.0.1:9', source: 'command line' });
  assert.deepEqual(json.settings.LEVEE_OPERATOR_KEY, { value: null, source: 'default' });
  assert.doesNotMatch(text.stdout + JSON.stringify(json), /hunter2/);
});

test('a wrong setting ends every command with status 2 and all problems, and no stack trace', () => {
  for (const command of [['up'], ['serve'], ['edge'], ['migrate'], ['config', 'check']]) {
    const { stdout, stderr, status } = levee(command, { LEVEE_LISTEN: 'x', LEVEE_LISTN: 'y' });
    assert.equal(status, 2, stderr);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /LEVEE_LISTN: there is no such setting; did you mean LEVEE_LISTEN\?\n.*LEVEE_LISTEN: expected host:port/,
    );
    assert.doesNotMatch(stderr, /\n\s+at /);
  }
});

test('a data directory that cannot be made, and a port that is taken, are told in one sentence', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const place = levee(['up', '--data-dir', join(file, 'x')]);
  assert.equal(place.status, 2);
  assert.match(place.stderr, /^levee: LEVEE_DATA_DIR: .* cannot be made \(ENOTDIR\)$/m);
  const taken = createServer().listen(0, '127.0.0.1');
  try {
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const { stderr, status } = levee(['up', '--listen', `127.0.0.1:${port}`, '--edge-driver', 'off']);
    assert.equal(status, 1);
    assert.match(stderr, /^levee: the control plane did not start: cannot listen on .* address already in use/m);
    assert.equal(stderr.match(/cannot listen/g)?.length, 1);
  } finally {
    taken.close();
  }
});

test('up refuses a network namespace that does not exist, before anything is started', {
  skip: process.getuid?.() !== 0 && 'not root',
}, () => {
  const { stderr, status } = levee(['up'], { LEVEE_EDGE_NETNS: `levee-absent-${process.pid}` });
  assert.equal(status, 2);
  assert.match(stderr, /^levee: LEVEE_EDGE_NETNS: there is no network namespace levee-absent-/m);
});
