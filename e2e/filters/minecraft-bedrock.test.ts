/**
 * Guarantees of filter kind 12. The client that asks is gamedig, the server @jsprismarine/raknet; who joins speaks RakNet in the
 * test's own octets, as there is no client in JavaScript alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, server } from './filtered-path.ts';
import { ask, exchange, startGame } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 19_132;
const fixed = '00ffff00fefefefefdfdfdfd12345678';
const firstRequest = `05 ${fixed} 0a ${'00'.repeat(1446)}`;
const secondRequest = `07 ${fixed} 04 34ff8ef8 4abc 0578 0000000012345678`;
/** ID_CONNECTION_REQUEST and a ping, both reliable. */
const connection = '84 000000 40 0090 000000 09 0000000012345678 00000000000003e8 00';
const ping = '84 010000 40 0048 010000 00 0000000000000007';

test('a list pings and a player opens a session through the filter, junk beside them is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('bedrock');
  using strangers = new Strangers(path);
  path.filter(12);
  await startGame(path, path.server, 'raknet-server.ts', [server[4], port]);

  const unopened = Buffer.from(connection.replaceAll(' ', ''), 'hex');
  const unwanted = [unopened, ...junk(200, 60), ...junk(100, 60, '84'), ...junk(100, 33, '01'), ...junk(50, 34, '07')];
  const [listed, arrived] = await Promise.all([ask(path, 'minecraftbedrock', port), strangers.send(port, unwanted)]);
  assert.match(listed.name, /JSRakNet/);
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), unwanted.length);

  const before = path.discarded();
  const answers = await exchange(path, 4, port, [firstRequest, secondRequest, connection, ping]);
  assert.match(answers[0] ?? '', /^06/, 'the first reply');
  assert.match(answers[1] ?? '', /^08/, 'the second reply');
  assert.match(answers[2] ?? '', /^(c0|8)/, 'an acknowledgement, or that the connection is accepted');
  assert.match(answers[3] ?? '', /^(c0|8)/);
  assert.equal(path.discarded(), before);
});
