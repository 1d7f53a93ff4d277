/** Guarantees of filter kind 11, with a client and a server of mcproto, and gamedig asking. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { filterChain, filterSet } from '@levee/core/nftables/names.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { ask, startGame } from './games/on-path.ts';

const port = 25_565;

/** By the filter of one family. */
function discardedOf(path: FilteredPath, family: 4 | 6): number {
  const chain = filterChain('discard', `00000000-0000-7000-8000-00000000000${family}`);
  return Number(/counter packets (\d+)/.exec(path.router.run('nft', ['list', 'chain', 'inet', 'levee', chain]))?.[1]);
}

/** A connection that begins with something else, until the filter has discarded that. */
async function beginOtherwise(path: FilteredPath, family: 4 | 6, payload: string): Promise<string> {
  const script = `const s = require('node:net').connect(${port}, '${server[family]}');
    s.on('connect', () => console.log('connected'));
    s.on('data', () => console.log('answer'));
    process.stdin.on('data', () => s.write(Buffer.from('${payload}', 'hex')));`;
  const program = path.start(path.client, process.execPath, ['-e', script]);
  await until('the connection', () => program.output.includes('connected'));
  const before = discardedOf(path, family);
  program.child.stdin?.write('go\n');
  // TCP sends it again.
  await until('its data to be discarded twice', () => discardedOf(path, family) >= before + 2);
  return program.output.trim();
}

test('a list asks and players play through the filter, connections that begin otherwise get nowhere', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('minecraft-java');
  path.filter(11);
  await startGame(path, path.server, 'minecraft-server.ts', [port, ...Object.values(server)]);
  assert.deepEqual((await ask(path, 'minecraftvanilla', port)).players, ['Notch']);
  for (const family of families) {
    const player = await startGame(path, path.client, 'minecraft-player.ts', [server[family], port], 'joined');
    const [other] = await Promise.all([
      beginOtherwise(path, family, 'deadbeefdeadbeef'),
      (async () => {
        player.child.stdin?.write('hello\n');
        await until('the answer', () => player.output.includes('hello'));
      })(),
    ]);
    assert.equal(other, 'connected', `no answer over IPv${family}`);
    player.child.stdin?.end(`${'long '.repeat(1000)}\n`);
    await until('a long answer', () => player.output.includes('long '.repeat(1000)));
  }
  const octetByOctet = `const s = require('node:net').connect({ port: ${port}, host: '${server[4]}', noDelay: true });
    const rest = Buffer.from('002f093132372e302e302e31870701' + '0100', 'hex');
    s.on('connect', () => s.write(Buffer.from('0f', 'hex'), () => s.write(rest)));
    s.on('data', () => { console.log('answer'); process.exit(); });
    setTimeout(() => process.exit(), 3000);`;
  const { output } = await path.run(path.client, process.execPath, ['-e', octetByOctet]);
  assert.equal(output.trim(), 'answer', 'a length that was sent by itself is no hindrance');
});

test('a player who was there before the filter stays', { skip: labObstacle() ?? false }, async () => {
  await using path = new FilteredPath('java-before');
  await startGame(path, path.server, 'minecraft-server.ts', [port, ...Object.values(server)]);
  const players = await Promise.all(
    families.map((family) => startGame(path, path.client, 'minecraft-player.ts', [server[family], port], 'joined')),
  );
  const speak = async (word: string) => {
    for (const player of players) {
      player.child.stdin?.write(`${word}\n`);
      await until(`the answer ${word}`, () => player.output.includes(word));
    }
  };
  path.filter(11, {}, { settling: true });
  await speak('first');
  await speak('second');
  path.settle();
  await speak('third');
  for (const player of players) player.child.stdin?.end();
});

test('players play behind a SYN proxy and this filter', { skip: labObstacle() ?? false }, async () => {
  await using path = new FilteredPath('java-proxy');
  const filters = families.flatMap((family) =>
    [1, 11].map((kind) => {
      const uuid = `00000000-0000-7000-8000-0000000${family}00${kind.toString().padStart(2, '0')}`;
      const named = { dst: server[family], filter: kind, priority: kind, port: { dst: { start: port } } };
      const parsed = parseFilter(named, { uuid, sequence: kind });
      if (!parsed.ok) throw new Error(JSON.stringify(parsed));
      return parsed.filter;
    }),
  );
  path.router.loadNft(createCompiler().replace(filters, '0'.repeat(16)).text);
  for (const { uuid } of filters) {
    path.router.loadNft(`flush set inet levee ${filterSet('settling', uuid)}\n`);
  }
  await startGame(path, path.server, 'minecraft-server.ts', [port, ...Object.values(server)]);
  for (const family of families) {
    const player = await startGame(path, path.client, 'minecraft-player.ts', [server[family], port], 'joined');
    player.child.stdin?.end('hello\n');
    await until('the answer', () => player.output.includes('hello'));
  }
});
