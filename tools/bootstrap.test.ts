/**
 * Guarantees of bootstrap.mjs, in a folder of its own with programs that only note how they were called in place of npm,
 * dpkg-query and apt-get: the real ones need a registry and change the machine. `.ci/run` in a fresh clone is the test
 * with the real ones.
 */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

const isRoot = process.getuid?.() === 0;
const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

class Clone {
  readonly folder = mkdtempSync(join(tmpdir(), `levee-bootstrap-${process.pid}-`));
  readonly calls = join(this.folder, 'calls');

  constructor() {
    made.push(this.folder);
    copyFileSync(join(import.meta.dirname, '..', 'bootstrap.mjs'), join(this.folder, 'bootstrap.mjs'));
    this.file('package.json', JSON.stringify({ dependencies: { node: process.versions.node } }));
    this.file('package-lock.json', JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.0' } } }));
    this.file(
      'deploy/packages.debian',
      'nftables @start # filters\npostgresql @start @database # stores\nethtool # tests\n',
    );
    this.file(
      'tools/test.ts',
      "console.log('ran', process.argv.slice(2).join(' '), process.env.LEVEE_TEST_MISSING ?? '');\n",
    );
    this.file(
      'packages/cli/src/levee.ts',
      "console.log('levee', process.argv.slice(2).join(' '));\nprocess.exitCode = 7;\n",
    );
    this.program(
      'npm',
      `mkdir -p node_modules/.bin node_modules/a && cp package-lock.json node_modules/.package-lock.json && ln -sf '${process.execPath}' node_modules/.bin/node`,
    );
    this.program('dpkg-query', "echo 'nftables installed'; echo 'postgresql not-installed'; exit 1");
    this.program('apt-get', 'exit 0');
  }

  file(name: string, text: string): void {
    mkdirSync(join(this.folder, name, '..'), { recursive: true });
    writeFileSync(join(this.folder, name), text);
  }

  program(name: string, body: string): void {
    this.file(`bin/${name}`, `#!/bin/sh\necho ${name} "$@" >> '${this.calls}'\n${body}\n`);
    chmodSync(join(this.folder, 'bin', name), 0o755);
  }

  run(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    prefix: readonly string[] = [],
  ): SpawnSyncReturns<string> {
    rmSync(this.calls, { force: true });
    const [command = '', ...rest] = [...prefix, process.execPath, join(this.folder, 'bootstrap.mjs'), ...args];
    const PATH = `${join(this.folder, 'bin')}:/usr/bin:/bin`;
    return spawnSync(command, rest, { encoding: 'utf8', env: { PATH, ...environment }, timeout: 60_000 });
  }

  /** Calls of the programs in the last run, one a line. */
  get called(): string[] {
    return existsSync(this.calls) ? readFileSync(this.calls, 'utf8').trim().split('\n') : [];
  }
}

describe('npm packages', () => {
  test('are installed when there are none, not again afterwards, and again when the lock file changes', () => {
    const clone = new Clone();
    const npmCalls = () => clone.called.filter((call) => call.startsWith('npm'));
    assert.match(clone.run(['test', 'a', '--b']).stdout, /^ran a --b /);
    assert.deepEqual(npmCalls(), ['npm ci --no-audit --no-fund --loglevel=error']);
    clone.run(['test']);
    assert.deepEqual(npmCalls(), []);
    clone.file('package-lock.json', JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.1' } } }));
    clone.run(['test']);
    assert.equal(npmCalls().length, 1);
    rmSync(join(clone.folder, 'node_modules', 'a'), { recursive: true });
    clone.run(['test']);
    assert.equal(npmCalls().length, 1, 'a package that was removed by hand is noticed');
  });

  test('that cannot be installed end the command, and nothing is run', () => {
    const clone = new Clone();
    clone.program('npm', 'exit 3');
    const { status, stdout, stderr } = clone.run(['test']);
    assert.equal(status, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /npm ci failed with status 3/);
  });

  test('of another platform, which npm leaves out, are not missed', () => {
    const clone = new Clone();
    const packages = { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '1.0.0', optional: true } };
    clone.program(
      'npm',
      `mkdir -p node_modules/.bin node_modules/a && echo '{"packages":{"node_modules/a":{"version":"1.0.0"}}}' > node_modules/.package-lock.json && ln -sf '${process.execPath}' node_modules/.bin/node`,
    );
    clone.file('package-lock.json', JSON.stringify({ packages }));
    clone.run(['test']);
    clone.run(['test']);
    assert.deepEqual(
      clone.called.filter((call) => call.startsWith('npm')),
      [],
    );
  });
});

describe('Debian packages', () => {
  test('as root: the missing ones, and only those, after one update', { skip: !isRoot && 'not root' }, () => {
    const clone = new Clone();
    const { stdout, status } = clone.run(['test']);
    const apt = clone.called.filter((call) => call.startsWith('apt-get'));
    assert.equal(apt.length, 2);
    assert.equal(apt[0], 'apt-get update -q');
    assert.match(apt[1] ?? '', /^apt-get install .* postgresql ethtool$/);
    assert.match(stdout, /^ran {2}$/m);
    assert.equal(status, 0);
  });

  test('as root: starting takes those it needs, without a database when one is named', {
    skip: !isRoot && 'not root',
  }, () => {
    const clone = new Clone();
    const installed = () => clone.called.find((call) => call.startsWith('apt-get install'))?.replace(/^.* -o \S+ /, '');
    assert.equal(clone.run(['start']).status, 7);
    assert.equal(installed(), 'postgresql');
    clone.run(['start'], { DATABASE_URL: 'postgres://db/levee' });
    assert.equal(installed(), undefined);
  });

  test('not as root: what is missing is named, why it is wanted too, and the suites are told', () => {
    const clone = new Clone();
    if (isRoot) chmodSync(clone.folder, 0o777);
    const { stdout, stderr } = clone.run(
      ['test'],
      {},
      isRoot ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'] : [],
    );
    assert.match(
      stderr,
      /^missing: postgresql \(stores\)\nmissing: ethtool \(tests\)\nnot root: .*apt-get install postgresql ethtool/m,
    );
    assert.match(stdout, /^ran {2}postgresql ethtool$/m);
  });
});

describe('packages that must not be installed', () => {
  const listed = 'linux-image-amd64 @unpacked # guests\n';

  test('are fetched by a program of the checkout, for tests alone', () => {
    const clone = new Clone();
    clone.file('deploy/packages.debian', listed);
    clone.file(
      'tools/fetch-guest-kernel.ts',
      `import { appendFileSync } from 'node:fs';
appendFileSync('${clone.calls}', 'fetch\\n');\n`,
    );
    assert.match(clone.run(['test']).stdout, /^ran {2}$/m);
    assert.equal(clone.called.at(-1), 'fetch');
    assert.ok(!clone.called.some((call) => call.startsWith('apt-get')), 'none of them is installed');
    clone.run(['start']);
    assert.ok(!clone.called.includes('fetch'));
  });

  test('that cannot be fetched are named, and the suites are told', () => {
    const clone = new Clone();
    clone.file('deploy/packages.debian', listed);
    clone.file('tools/fetch-guest-kernel.ts', `console.error('no network'); process.exitCode = 1;\n`);
    const { stdout, stderr } = clone.run(['test']);
    assert.match(stderr, /^no network\nmissing: linux-image-amd64 \(guests\)$/m);
    assert.match(stdout, /^ran {2}linux-image-amd64$/m);
  });
});

test('the command gets its arguments, and its status is ours', () => {
  const clone = new Clone();
  const { stdout, status } = clone.run(['levee', 'config', 'check', '-o', 'json']);
  assert.equal(stdout, 'levee config check -o json\n');
  assert.equal(status, 7);
  assert.equal(clone.run(['nonsense']).status, 1);
});
