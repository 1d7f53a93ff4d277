/** Guarantees of filter kind 11, with a client and a server of mcproto, and gamedig asking. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { ask, startGame } from './games/on-path.ts';

const port = 25_565;

/** A connection that sends something and then waits: what became of it. */
async function attempt(path: FilteredPath, family: 4 | 6, payload: string): Promise<string> {
  const script = `const s = require('node:net').connect(${port}, '${server[family]}');
    s.on('connect', () => { s.write(Buffer.from('${payload.replaceAll(' ', '')}', 'hex')); console.log('connected'); });
    s.on('data', (data) => { console.log('answer'); process.exit(); });
    s.on('error', () => process.exit()); s.on('close', () => process.exit());
    setTimeout(() => process.exit(), 700);`;
  return (await path.run(path.client, process.execPath, ['-e', script])).output.trim();
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
    const [before] = [path.discarded()];
    const [other] = await Promise.all([
      attempt(path, family, 'deadbeefdeadbeef'),
      (async () => {
        player.child.stdin?.write('hello\n');
        await until('the answer', () => player.output.includes('hello'));
      })(),
    ]);
    assert.equal(other, 'connected', `no answer over IPv${family}`);
    assert.ok(path.discarded() > before, 'what began wrongly was discarded');
    player.child.stdin?.end(`${'long '.repeat(1000)}\n`);
    await until('a long answer', () => player.output.includes('long '.repeat(1000)));
  }
  const octetByOctet = `const s = require('node:net').connect({ port: ${port}, host: '${server[4]}', noDelay: true });
    s.on('connect', async () => {
      s.write(Buffer.from('0f', 'hex'));
      await new Promise((done) => setTimeout(done, 50));
      s.write(Buffer.from('002f093132372e302e302e31870701' + '0100', 'hex'));
    });
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
