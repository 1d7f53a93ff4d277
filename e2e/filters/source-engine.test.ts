/**
 * Guarantees of filter kind 10. The client that asks is gamedig; no server of such a game can be had here, so answers come from
 * a small one of the test's own, and so does what a game client sends.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families } from './filtered-path.ts';
import { answerFor, ask, exchange } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 27_015;
const hex = (text: string) => Buffer.from(text, 'latin1').toString('hex');
const request = `ffffffff71 00000000 ${hex('0000000000\0')}`;
const game = '2a000000 11000000 00a3512800';

test('a server list asks and players come in through the filter, junk beside them is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('source-engine');
  using strangers = new Strangers(path);
  path.filter(10);
  await answerFor(path, 'source', port);

  const unopened = Buffer.from(game.replaceAll(' ', ''), 'hex');
  const unwanted = [...junk(200, 60), ...junk(100, 60, 'ffffffff54'), ...junk(100, 20, 'feffffff'), unopened];
  const [listed, arrived] = await Promise.all([ask(path, 'valve', port), strangers.send(port, unwanted)]);
  assert.deepEqual(listed, { name: 'Levee test server', players: ['Gordon'] });
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), unwanted.length);

  for (const family of families) {
    const answers = await exchange(path, family, port, [request, `ffffffff6b 18000000`, game, game]);
    assert.equal(answers.length, 4, `over IPv${family}`);
    assert.equal(answers[3], game.replaceAll(' ', ''));
  }
});

test('a game that ran before the filter goes on, and a source asks so often and no more', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('source-before');
  using strangers = new Strangers(path);
  await answerFor(path, 'source', port);
  path.filter(10, {}, { settling: true });
  await exchange(path, 4, port, [game]);
  path.settle();
  await exchange(path, 4, port, [game, game]);

  // 250 sources take turns: 8 each, well within what one of them may ask.
  const query = Buffer.from(`ffffffff54${hex('Source Engine Query\0')}`, 'hex');
  const queries = (count: number) => Array.from({ length: count }, () => query);
  assert.equal(await strangers.send(port, queries(2000)), 2000);
  // One source: 100 at once.
  let arrived = 0;
  for (let round = 0; round < 200; round++) arrived += await strangers.send(port, queries(1));
  assert.ok(arrived >= 90 && arrived < 150, `${arrived} of 200 arrived`);
});
