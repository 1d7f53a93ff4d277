/** Guarantees of filter kind 26 with chrony of Debian at both ends of the router. No clock is set: chronyd only compares. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle, type Namespace } from '@levee/lab/namespace.ts';
import { client, FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 123;
const kindId = 26;

/** Keys for both ends, and a certificate of the server's address for NTS (RFC 8915). */
class Secrets {
  readonly directory = mkdtempSync(join(tmpdir(), 'levee-ntp-'));

  constructor() {
    writeFileSync(this.file('keys'), '7 SHA1 HEX:000102030405060708090a0b0c0d0e0f10111213\n', { mode: 0o600 });
    const name = ['-subj', '/CN=time', '-addext', `subjectAltName=IP:${server[4]},IP:${server[6]}`];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const files = ['-keyout', this.file('time.key'), '-out', this.file('time.crt')];
    execFileSync('openssl', ['req', '-x509', ...key, ...name, ...files], { stdio: 'pipe' });
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Directives that let several chronyd run side by side. */
function apart(secrets: Secrets, name: string): string[] {
  const own = [`pidfile ${secrets.file(`${name}.pid`)}`, 'cmdport 0', 'bindcmdaddress /'];
  return [...own, `keyfile ${secrets.file('keys')}`, `ntsdumpdir ${secrets.file(name)}`];
}

/** Serves the time of this machine at once, without a source of its own. */
async function serve(path: FilteredPath, secrets: Secrets, namespace: Namespace, name: string, more: string[] = []) {
  const directives = [...apart(secrets, name), 'local stratum 2', 'allow all', ...more];
  const program = path.start(namespace, 'chronyd', ['-d', '-x', '-u', 'root', ...directives]);
  await until('chronyd to listen', () => {
    if (program.child.exitCode !== null) throw new Error(`chronyd ended: ${program.output}`);
    return namespace.run('ss', ['-Hlun', 'sport', '=', `:${port}`]).trim() !== '';
  });
}

let asked = 0;

/** Asks, and says how far the clock is off; it is the same clock. */
async function ask(path: FilteredPath, secrets: Secrets, namespace: Namespace, source: string, more: string[] = []) {
  const directives = [...apart(secrets, `asking-${asked++}`), source, ...more];
  const { code, output } = await path.run(namespace, 'chronyd', ['-Q', '-t', '5', '-u', 'root', ...directives]);
  assert.equal(code, 0, `${source}: ${output}`);
  assert.match(output, /System clock wrong by -?0\.00\d+ seconds/);
}

test('clients of each form get the time through the filter; what reflectors are made of is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  using secrets = new Secrets();
  await using path = new FilteredPath('ntp');
  using strangers = new Strangers(path);
  path.filter(kindId);
  const nts = [`ntsserverkey ${secrets.file('time.key')}`, `ntsservercert ${secrets.file('time.crt')}`];
  await serve(path, secrets, path.server, 'serving', nts);
  const asking = families.flatMap((family) => {
    const source = `server ${server[family]} iburst maxsamples 1`;
    return [
      ask(path, secrets, path.client, source),
      ask(path, secrets, path.client, `${source} version 3`),
      ask(path, secrets, path.client, `${source} key 7`),
      ask(path, secrets, path.client, `${source} nts`, [`ntstrustedcerts ${secrets.file('time.crt')}`]),
    ];
  });
  await Promise.all(asking);
  assert.equal(path.discarded(), 0);

  const unwanted = [
    ...junk(50, 48, '1602'),
    ...junk(50, 48, '1700032a'),
    ...junk(50, 48, '25'),
    ...junk(50, 47, '23'),
    ...junk(50, 12, '23'),
    ...junk(50, 468, '97'),
  ];
  assert.equal(await strangers.send(port, unwanted), 0);
  assert.equal(path.discarded(), unwanted.length);
  assert.equal(await strangers.send(port, junk(10, 48, '24')), 0, "answers from other ports than a server's");
  assert.equal(await strangers.send(port, junk(10, 48, '23')), 10, 'of the form of a question');
});

test('a server behind the filter that asks from port 123 gets its answers', {
  skip: labObstacle() ?? false,
}, async () => {
  using secrets = new Secrets();
  await using path = new FilteredPath('ntp');
  path.filter(kindId);
  await serve(path, secrets, path.client, 'serving');
  for (const family of families) {
    const from = [`acquisitionport ${port}`, `bindacqaddress ${server[family]}`];
    await ask(path, secrets, path.server, `server ${client[family]} iburst maxsamples 1`, from);
  }
  assert.equal(path.discarded(), 0);
});
