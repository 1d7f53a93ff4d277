/**
 * Owns the way from a bare clone to a running command: npm packages, the pinned Node, Debian packages.
 * Plain JavaScript that Node 18 reads; must never need an installed package, must never write to stdout
 * (that belongs to the command it starts).
 *
 * node bootstrap.mjs start|test|check|bench|long|generate|levee [arguments]
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const commands = {
  start: ['packages/cli/src/levee.ts', 'up'],
  test: ['tools/test.ts'],
  long: ['tools/test.ts', '--long'],
  check: ['tools/check.ts'],
  bench: ['tools/bench.ts'],
  generate: ['tools/generate.ts'],
  levee: ['packages/cli/src/levee.ts'],
};

const [name = '', ...rest] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) fail(`usage: node bootstrap.mjs ${Object.keys(commands).join('|')} [arguments]`);

// `npm run` puts node_modules/.bin first: the system's own node and npm are needed while that folder is rebuilt.
const systemPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder) && !folder.includes('node-gyp-bin'))
  .join(delimiter);

installNpmPackages();
const node = pinnedNode();
process.env.PATH = [join(root, 'node_modules', '.bin'), systemPath].join(delimiter);
if (name === 'test' || name === 'long' || name === 'bench') {
  installDebianPackages((entry) => !entry.tags.includes('@unpacked'));
  unpackGuestKernel();
}
if (name === 'start') {
  const external = process.env.DATABASE_URL || process.env.DATABASE_URL_FILE;
  installDebianPackages((entry) => entry.tags.includes('@start') && !(external && entry.tags.includes('@database')));
}
hand(node, [join(root, command[0]), ...command.slice(1), ...rest]);

function say(text) {
  writeSync(2, `${text}\n`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

/** The hidden lock file that npm leaves in node_modules tells what is installed, whoever installed it. */
function npmPackagesAreInstalled() {
  try {
    const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
    const wanted = read('package-lock.json');
    const installed = read('node_modules/.package-lock.json');
    for (const [path, entry] of Object.entries(wanted)) {
      if (!path.startsWith('node_modules/')) continue;
      const found = installed[path];
      if (found === undefined ? !entry.optional : found.version !== entry.version) return false;
      if (!entry.optional && !existsSync(join(root, path))) return false;
    }
    return true;
  } catch {
    return false;
  }
}

function installNpmPackages() {
  if (npmPackagesAreInstalled()) return;
  const release = takeInstallLock();
  try {
    if (npmPackagesAreInstalled()) return;
    say('installing npm packages (npm ci) …');
    const started = Date.now();
    const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: root,
      // A package that the tests use counts its installations at its maker's unless told not to.
      env: { ...process.env, PATH: systemPath, DO_NOT_TRACK: '1' },
      stdio: ['ignore', 2, 2],
    });
    if (npm.error) fail(`npm could not be started (${npm.error.message}): install Node.js 18 or newer with npm`);
    if (npm.status !== 0) fail(`npm ci failed with status ${npm.status ?? npm.signal}: see above`);
    say(`npm packages installed in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  } finally {
    release();
  }
}

/** Two commands started at once in a fresh clone must not both rebuild node_modules. */
function takeInstallLock() {
  const path = join(tmpdir(), `levee-install-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
  const deadline = Date.now() + 10 * 60_000;
  for (let told = false; ; ) {
    try {
      const file = openSync(path, 'wx', 0o600);
      writeSync(file, String(process.pid));
      closeSync(file);
      process.once('exit', () => rmSync(path, { force: true }));
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (error.code !== 'EEXIST') return () => {};
    }
    if (holderIsGone(path)) {
      rmSync(path, { force: true });
      continue;
    }
    if (Date.now() > deadline)
      fail(`another installation holds ${path} for ten minutes: remove that file if none runs`);
    if (!told) say('another installation is running in this folder: waiting for it …');
    told = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
  }
}

function holderIsGone(path) {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    if (!pid) return Date.now() - statSync(path).mtimeMs > 5_000;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/**
 * The `node` dependency gets its binary by an install script, which npm 11 may hold back and an offline cache may
 * miss: so it is looked at, not trusted, and run once more by hand.
 */
function pinnedNode() {
  const binary = join(root, 'node_modules', '.bin', 'node');
  const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies.node;
  const stamp = join(root, 'node_modules', '.levee-node');
  const version = () => {
    const probe = spawnSync(binary, ['--version'], { encoding: 'utf8' });
    return probe.status === 0 ? probe.stdout.trim().slice(1) : undefined;
  };
  if (process.versions.node === wanted && process.execPath.startsWith(join(root, 'node_modules'))) return binary;
  try {
    // Asking the binary costs 50 ms: its size, noted when it was asked, is enough afterwards.
    if (readFileSync(stamp, 'utf8') === `${wanted} ${statSync(binary).size}`) return binary;
  } catch {
    // Never asked before.
  }
  if (version() !== wanted) {
    say(`fetching Node.js ${wanted} …`);
    const folder = join(root, 'node_modules', 'node');
    const env = { ...process.env, PATH: systemPath };
    spawnSync('node', ['installArchSpecificPackage'], { cwd: folder, env, stdio: ['ignore', 2, 2] });
    // npm links a program only if it is there when its package arrives.
    if (!existsSync(binary) && existsSync(join(folder, 'bin', 'node'))) symlinkSync('../node/bin/node', binary);
  }
  if (version() === wanted) {
    writeFileSync(stamp, `${wanted} ${statSync(binary).size}`);
    return binary;
  }
  if (Number(process.versions.node.split('.')[0]) >= 24) {
    say(`Node.js ${wanted} could not be installed: going on with ${process.versions.node}`);
    return process.execPath;
  }
  return fail(`Node.js ${wanted} could not be installed, and ${process.versions.node} is too old: install Node.js 24`);
}

/** deploy/packages.debian: `name @tag … # why` a line. */
function debianPackages() {
  const entries = [];
  for (const line of readFileSync(join(root, 'deploy', 'packages.debian'), 'utf8').split('\n')) {
    const [text = '', ...why] = line.split('#');
    const [packageName, ...tags] = text.trim().split(/\s+/);
    if (packageName) entries.push({ name: packageName, tags, why: why.join('#').trim() });
  }
  return entries;
}

function installDebianPackages(wanted) {
  const entries = debianPackages().filter(wanted);
  const names = entries.map((entry) => entry.name);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's placeholders
  const format = '--showformat=${Package} ${db:Status-Status}\n';
  const query = spawnSync('dpkg-query', ['--show', format, ...names], { encoding: 'utf8' });
  if (query.error) {
    reportMissing(
      entries,
      "no dpkg here, so nothing was looked at: install these by this system's own means",
      'needed',
    );
    return;
  }
  const present = new Set();
  for (const line of query.stdout.split('\n')) {
    const [packageName, status] = line.split(' ');
    if (status === 'installed') present.add(packageName);
  }
  const missing = entries.filter((entry) => !present.has(entry.name));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0) {
    reportMissing(
      missing,
      `not root: install them by \`apt-get install ${missing.map((entry) => entry.name).join(' ')}\``,
    );
    return;
  }
  keepPostgresFromStarting(missing);
  say(`installing Debian packages: ${missing.map((entry) => entry.name).join(' ')} …`);
  const options = ['-y', '-q', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-confold'];
  const env = { ...process.env, PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive', UCF_FORCE_CONFFOLD: '1' };
  const apt = (...args) => spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0;
  const install = () => apt('install', ...options, ...missing.map((entry) => entry.name));
  apt('update', '-q');
  if (!install()) reportMissing(missing, 'apt-get could not install them: see above');
}

/** The kernel of the guests that tests start is a package that must not be installed: a program of ours fetches it. */
function unpackGuestKernel() {
  const entries = debianPackages().filter((entry) => entry.tags.includes('@unpacked'));
  if (entries.length === 0) return;
  const { status } = spawnSync(node, [join(root, 'tools', 'fetch-guest-kernel.ts')], { stdio: ['ignore', 2, 2] });
  if (status !== 0) reportMissing(entries, 'it could not be fetched: see above');
}

/** Debian's postgresql would create and start a cluster of its own on port 5432: only its programs are wanted. */
function keepPostgresFromStarting(missing) {
  const file = '/etc/postgresql-common/createcluster.conf';
  if (!missing.some((entry) => entry.name.startsWith('postgresql')) || existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'create_main_cluster = false\n');
}

/** What is missing is not fatal here: the tests that need it are left out by name, and then CI fails. */
function reportMissing(entries, reason, word = 'missing') {
  for (const entry of entries) say(`${word}: ${entry.name} (${entry.why})`);
  say(reason);
  const named = [process.env.LEVEE_TEST_MISSING, ...entries.map((entry) => entry.name)];
  process.env.LEVEE_TEST_MISSING = named.filter(Boolean).join(' ');
}

/** Gives this process over to the command, on the pinned Node, without a process in between where that is possible. */
function hand(binary, args) {
  if (process.versions.node.split('.')[0] >= 24 && process.execPath.startsWith(join(root, 'node_modules'))) {
    process.argv = [process.execPath, ...args];
    import(pathToFileURL(args[0]).href).catch((error) => {
      console.error(error);
      process.exit(1);
    });
    return;
  }
  if (typeof process.execve === 'function' && process.platform !== 'win32') {
    process.emitWarning = () => {}; // it is called experimental, on standard error, each time
    process.execve(binary, [binary, ...args], process.env);
  }
  const child = spawn(binary, args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => fail(`${binary} could not be started: ${error.message}`));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
