/**
 * Guarantees of filter kind 14. Sessions are ENet's own (Debian's libenet at both ends), over IPv4 as it knows no other; the
 * client that asks over UDP and TCP is gamedig, and the answers come from a small server of the test's own. FiveM's
 * programs cannot be had here.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, server, until } from './filtered-path.ts';
import { answerFor, ask, startGame } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 30_120;
const count = (text: string, word: string) => text.split(word).length - 1;

test('a list asks over UDP and TCP through the filter, junk beside it is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('fivem');
  using strangers = new Strangers(path);
  path.filter(14);
  await answerFor(path, 'fivem', port);
  const unwanted = [...junk(200, 60), ...junk(100, 52, '8fff'), ...junk(100, 30, 'ffffffff'), ...junk(100, 52, '8000')];
  const [listed, arrived] = await Promise.all([ask(path, 'fivem', port), strangers.send(port, unwanted)]);
  assert.deepEqual(listed, { name: 'Levee test server', players: ['Michael'] });
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), unwanted.length);
});

test('an ENet session opens and goes on through the filter, and one that ran before it stays', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('fivem-enet');
  using strangers = new Strangers(path);
  await startGame(path, path.server, 'enet.ts', ['server', server[4], port]);
  const before = await startGame(path, path.client, 'enet.ts', ['client', server[4], port], 'answered');
  path.filter(14, {}, { settling: true });
  const sofar = count(before.output, 'answered');
  await until('answers while the filter settles', () => count(before.output, 'answered') > sofar + 5);
  path.settle();
  const client = await startGame(path, path.client, 'enet.ts', ['client', server[4], port], 'connected');
  const settled = count(before.output, 'answered');
  const [arrived] = await Promise.all([
    strangers.send(port, junk(300, 40, '8000')),
    until('answers to the new session', () => count(client.output, 'answered') > 20),
    until('answers to the old session', () => count(before.output, 'answered') > settled + 20),
  ]);
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), 300, 'no packet of a session was discarded');
  assert.ok(!/disconnected/.test(before.output + client.output));
});
