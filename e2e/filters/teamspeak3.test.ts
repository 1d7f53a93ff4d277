/**
 * Guarantees of filter kind 15. The client is @honeybbq/teamspeak-client, over IPv4 as it knows no other; no server can be had
 * here, so a small one of the test's own opens the session with it and pings it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, server, until } from './filtered-path.ts';
import { startGame } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 9987;

test('a client opens a session through the filter and answers in it, junk beside it is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('teamspeak');
  using strangers = new Strangers(path);
  path.filter(15);
  const there = await startGame(path, path.server, 'teamspeak-server.ts', [port, ...Object.values(server)]);
  const pong = Buffer.from('0000000000000000000000008500 01'.replaceAll(' ', ''), 'hex');
  const unwanted = [pong, ...junk(300, 60), ...junk(100, 34, '54533349'), ...junk(100, 600)];
  const [arrived] = await Promise.all([
    strangers.send(port, unwanted),
    startGame(path, path.client, 'teamspeak-client.ts', [`${server[4]}:${port}`], 'connecting'),
    until("the client's answer to a ping", () => there.output.includes('pong')),
  ]);
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), unwanted.length, 'no packet of the client was discarded');
  assert.match(there.output, /step 0\n[\s\S]*step 2\n[\s\S]*step 4\n[\s\S]*pong/);
});
