/** Guarantees of the kinds with a SYN proxy beside other filters and rules of the same destination, with real connections. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry } from '@levee/core/filter/entry.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';

const skip = labObstacle() ?? false;
const proxies = [1, 29] as const;
const connections = 20;

/** What a client says first on a port, so that the kind of filter there takes it for one of its own. */
const minecraft = { port: 25565, firstHex: '0f002f096c6f63616c686f737463dd01' } as const;
const http = (port: number) => ({ port, firstHex: Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex') });
const beside = [
  { kindId: 2, ...http(80) },
  { kindId: 11, ...minecraft },
  { kindId: 14, ...http(30120) },
  { kindId: 17, ...http(64738) },
] as const;

let made = 0;
function filterOf(family: Family, kindId: number, fields: object = {}): Entry {
  made += 1;
  const uuid = `01900000-0000-7000-8000-${made.toString(16).padStart(12, '0')}`;
  const parsed = parseFilter({ dst: server[family], filter: kindId, ...fields }, { uuid, sequence: made });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.filter;
}

function ruleOf(family: Family, fields: object): Entry {
  made += 1;
  const uuid = `01900000-0000-7000-8000-${made.toString(16).padStart(12, '0')}`;
  const parsed = parseRule(
    { dst: server[family], protocol: 'any', action: 'accept', ...fields },
    { uuid, sequence: made },
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.rule;
}

/** Where the server waits for no word of its clients (ssh). */
const speaking = 22;

/** Echoes on every port but one, and says when it listens. */
const echoing = `const { createServer } = require('node:net');
  for (const address of ${JSON.stringify(Object.values(server))}) {
    createServer((socket) => socket.on('error', () => {}).write('first')).listen(${speaking}, address);
  }
  for (const port of ${JSON.stringify([80, ...beside.map(({ port }) => port)])}) {
    for (const address of ${JSON.stringify(Object.values(server))}) {
      createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(port, address).on('error', () => {});
    }
  }
  console.log('ready');`;

/** For each line that names a port and a client's first words: prints how many of the connections have an answer. */
const connecting = `const { connect } = require('node:net');
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { host, port, firstHex } = JSON.parse(line);
    let [served, left] = [0, ${connections}];
    for (let index = 0; index < ${connections}; index += 1) {
      const socket = connect({ host, port }, () => socket.write(Buffer.from(firstHex, 'hex')));
      socket.setTimeout(3000, () => socket.destroy());
      socket.on('data', () => { served += 1; socket.destroy(); }).on('error', () => {});
      socket.on('close', () => { left -= 1; if (left === 0) console.log('served ' + served); });
    }
  });`;

/** The server's echo, and a client that tells how many of its connections to a port are served. */
async function bothEnds(path: FilteredPath) {
  const echo = path.start(path.server, process.execPath, ['-e', echoing]);
  await until('the servers to listen', () => echo.output.includes('ready'));
  const client = path.start(path.client, process.execPath, ['-e', connecting]);
  return async (family: Family, port: number, firstHex: string): Promise<number> => {
    const from = client.output.length;
    client.child.stdin?.write(`${JSON.stringify({ host: server[family], port, firstHex })}\n`);
    return Number(await until('the connections', () => /^served (\d+)$/m.exec(client.output.slice(from))?.[1]));
  };
}

test('connections come about through a SYN proxy, whatever filter was made before it or comes after it', {
  skip,
}, async (t) => {
  await using path = new FilteredPath('withproxy');
  const served = await bothEnds(path);
  for (const proxy of proxies) {
    for (const { kindId, port, firstHex } of beside) {
      await t.test(`kinds ${proxy} and ${kindId}`, async () => {
        const ports = { port: { dst: { start: port } } };
        for (const [index, order] of ['made before', 'made after', 'asked before', 'asked after'].entries()) {
          // Both families under every order would take twice as long and say the same.
          const family = families[index % 2] as Family;
          const priority = order === 'asked before' ? 1 : order === 'asked after' ? 2000 : 1000;
          const make = [
            () => filterOf(family, proxy, { ...ports, priority }),
            () => filterOf(family, kindId, kindId === 2 ? ports : {}),
          ];
          if (order === 'made after') make.reverse();
          path.load(make.map((each) => each()));
          assert.equal(await served(family, port, firstHex), connections, `IPv${family}, the proxy ${order}`);
        }
      });
    }
  }
});

test('a server that speaks first is heard at once', { skip }, async (t) => {
  await using path = new FilteredPath('speaksfirst');
  const served = await bothEnds(path);
  for (const family of families) {
    for (const proxy of proxies) {
      await t.test(`IPv${family}, kind ${proxy}`, async () => {
        path.load([filterOf(family, proxy, { port: { dst: { start: speaking } } })]);
        const begun = performance.now();
        assert.equal(await served(family, speaking, ''), connections);
        const milliseconds = performance.now() - begun;
        // A server that refuses the router's ACK says nothing, and sends its SYN-ACK again after a second.
        assert.ok(milliseconds < 900, `${milliseconds} ms`);
      });
    }
  }
});

test('a SYN that conntrack must not see is new to rules', { skip }, async (t) => {
  await using path = new FilteredPath('newtorules');
  const served = await bothEnds(path);
  const { port, firstHex } = http(80);
  const web = { protocol: 'tcp', port: { dst: { start: 80 } } };
  for (const family of families) {
    await t.test(`IPv${family}: a list of what is allowed, by its states, allows connections`, async () => {
      const list = [{ statetype: 'established' }, { ...web, statetype: 'new' }, { action: 'drop' }];
      path.load([...list.map((fields) => ruleOf(family, fields)), filterOf(family, 1)]);
      assert.equal(await served(family, port, firstHex), connections);
    });
    await t.test(`IPv${family}: what is new is counted, and goes on to the proxy`, async () => {
      const counting = ruleOf(family, { ...web, action: 'continue', statetype: 'new' });
      path.load([counting, filterOf(family, 1)]);
      assert.equal(await served(family, port, firstHex), connections);
      const chains = path.router.run('nft', ['list', 'table', 'inet', 'levee']);
      // Of each handshake the SYN and the ACK, which conntrack does not know either.
      const counted = Number(/ct state [a-z,]+ counter packets (\d+)/.exec(chains)?.[1]);
      assert.ok(counted >= 2 * connections, `${counted} packets were new`);
    });
    await t.test(`IPv${family}: no rule for what is invalid matches it`, async () => {
      path.load([ruleOf(family, { protocol: 'tcp', statetype: 'invalid', action: 'drop' }), filterOf(family, 1)]);
      assert.equal(await served(family, port, firstHex), connections);
    });
  }
});
