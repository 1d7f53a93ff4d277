/** Guarantees of filter kind 13. The client is gamedig; the server is a small one of the test's own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families } from './filtered-path.ts';
import { answerFor, ask, exchange } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 25_565;

test('a query gets its answers through the filter, junk beside it is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('minecraft-query');
  using strangers = new Strangers(path);
  path.filter(13);
  await answerFor(path, 'minecraft-query', port);
  const unwanted = [...junk(200, 15), ...junk(200, 15, 'fefd00ffffffff'), ...junk(100, 12, 'fefd0900000001')];
  const [listed, arrived] = await Promise.all([ask(path, 'gamespy3', port), strangers.send(port, unwanted)]);
  assert.deepEqual(listed, { name: 'Levee test server', players: ['Notch'] });
  assert.equal(arrived, 0);
  assert.equal(path.discarded(), unwanted.length);
  for (const family of families) {
    const answers = await exchange(path, family, port, ['fefd09 00000001', 'fefd00 00000001 0091295b']);
    assert.equal(answers.length, 2, `over IPv${family}`);
  }
});
