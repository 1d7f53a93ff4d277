/** Guarantees of filter kind 25 with coturn of Debian behind the router, and its clients before it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { client, FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 3478;
const kindId = 25;

/** Octets 4 to 7 of every message. */
const cookie = '2112a442';

class Coturn {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-coturn-'));

  async start(path: FilteredPath): Promise<void> {
    const addresses = families.flatMap((family) => ['-L', server[family], '-E', server[family]]);
    const files = ['--pidfile', join(this.#directory, 'pid'), '--userdb', join(this.#directory, 'users')];
    const program = path.start(path.server, 'turnserver', [
      ...['-n', '--no-cli', '--no-tls', '--no-dtls', '--log-file', 'stdout', '--relay-threads', '1'],
      ...['--lt-cred-mech', '-u', 'alice:secret', '-r', 'example.com', ...addresses, ...files],
    ]);
    await until('coturn to listen', () => {
      if (program.child.exitCode !== null) throw new Error(`turnserver ended: ${program.output}`);
      const sockets = path.server.run('ss', ['-Hlun', 'sport', '=', `:${port}`]);
      return families.every((family) => sockets.includes(server[family]));
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

test('clients learn their addresses and send through relays; answers and channel data of strangers are discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  using coturn = new Coturn();
  await using path = new FilteredPath('stun');
  using strangers = new Strangers(path);
  path.filter(kindId);
  await coturn.start(path);

  const learn = async (family: 4 | 6) => {
    const { output } = await path.run(path.client, 'turnutils_stunclient', [server[family]]);
    assert.ok(output.includes(`UDP reflexive addr: ${client[family]}:`), output);
  };
  /** Ten messages from one relay to another and back: as channel data, or as indications. */
  const relay = async (form: 'channels' | 'indications') => {
    const how = form === 'channels' ? [] : ['-s'];
    const args = ['-y', ...how, '-u', 'alice', '-w', 'secret', '-m', '1', '-n', '5', '-c', server[4]];
    const { output } = await path.run(path.client, 'turnutils_uclient', args);
    assert.match(output, /tot_send_msgs=10, tot_recv_msgs=10/, `${form}: ${output}`);
    assert.match(output, /Total lost packets 0 /);
  };
  const flood = async () => {
    const unwanted = [
      ...junk(100, 112, '4001006c'),
      ...junk(50, 100, `01010050${cookie}`),
      ...junk(50, 100, `00160050${cookie}`),
      ...junk(50, 20, '00010000'),
      ...junk(50, 21, `00010000${cookie}`),
    ];
    assert.equal(await strangers.send(port, unwanted), 0);
    return unwanted.length;
  };
  const [, , , , unwanted] = await Promise.all([learn(4), learn(6), relay('channels'), relay('indications'), flood()]);
  assert.equal(path.discarded(), unwanted, 'of the clients nothing');
  assert.equal(await strangers.send(port, junk(10, 20, `00010000${cookie}`)), 10, 'of the form of a request');
  assert.equal(await strangers.send(port, junk(10, 112, '4001006c')), 0, 'a request for an address makes nobody known');
});
