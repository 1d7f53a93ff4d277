/**
 * Guarantees of filter kind 17 with mumble-server of Debian (1.3) behind the router. Debian has no client without a screen:
 * mumble-client.ts is one of this test's own. The pings of Mumble 1.5, which this server does not answer, are held to the
 * kind's vectors alone.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 64_738;
const kindId = 17;

class MumbleServer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-mumble-'));

  async start(path: FilteredPath): Promise<void> {
    const file = (name: string) => join(this.#directory, name);
    const settings = [
      'dbus=',
      'ice=',
      'bonjour=false',
      'allowping=true',
      'uname=root',
      `host=${server[4]} ${server[6]}`,
    ];
    const own = [`database=${file('sqlite')}`, `logfile=${file('log')}`, `pidfile=${file('pid')}`, `port=${port}`];
    writeFileSync(file('ini'), [...settings, ...own, ''].join('\n'));
    const program = path.start(path.server, 'murmurd', ['-fg', '-ini', file('ini')]);
    await until('mumble-server to listen', () => {
      if (program.child.exitCode !== null) throw new Error(`murmurd ended: ${program.output}`);
      const sockets = path.server
        .run('ss', ['-Hltun', 'sport', '=', `:${port}`])
        .trim()
        .split('\n');
      return sockets.length === 2 * families.length;
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Has the client do one thing, and waits for the server's answer to it. */
type Doing = (what: 'connect' | 'tcp' | 'udp' | 'query', answer?: string) => Promise<void>;

function startClient(path: FilteredPath, family: 4 | 6): Doing {
  const file = join(import.meta.dirname, 'mumble-client.ts');
  const program = path.start(path.client, process.execPath, [file, server[family], `${port}`]);
  return async (what, answer = what) => {
    const answers = () => program.output.split('\n').filter((line) => line === answer).length;
    const before = answers();
    program.child.stdin?.write(`${what}\n`);
    await until(`the answer to ${what}`, () => {
      if (program.child.exitCode !== null) throw new Error(`the client ended: ${program.output}`);
      return answers() > before;
    });
  };
}

test('mumble-server behind the filter', { skip: labObstacle() ?? false }, async (t) => {
  using mumble = new MumbleServer();
  await using path = new FilteredPath('mumble');
  using strangers = new Strangers(path);
  await mumble.start(path);

  await t.test('voice passes for whom a TCP session is open, pings for everybody, and nothing else', async () => {
    path.filter(kindId);
    for (const family of families) {
      const client = startClient(path, family);
      await client('query');
      await client('connect', 'synced');
      await client('tcp');
      const before = path.discarded();
      const unwanted = [...junk(200, 80), ...junk(50, 13, '00000000'), ...junk(50, 20, '0108')];
      const [, arrived] = await Promise.all([client('udp'), strangers.send(port, unwanted)]);
      assert.equal(arrived, 0);
      await client('udp');
      await client('query');
      assert.equal(path.discarded() - before, unwanted.length, 'of the session nothing');
    }
    assert.equal(await strangers.send(port, junk(10, 12, '00000000')), 10);
    assert.equal(await strangers.send(port, junk(10, 12, '0108')), 10, 'as Mumble 1.5 asks');
    assert.equal(await strangers.send(port, junk(10, 80)), 0, 'a ping makes nobody known');
  });

  await t.test('a session older than the filter goes on when the filter has settled', async () => {
    path.unfilter();
    const client = startClient(path, 4);
    await client('connect', 'synced');
    await client('udp');
    path.filter(kindId, {}, { settling: true });
    await client('udp');
    await client('tcp');
    await client('tcp');
    path.settle();
    await client('udp');
    await client('tcp');
    assert.equal(path.discarded(), 0);
  });
});
