/**
 * Guarantees of filter kind 16. The client that asks is gamedig; no server can be had here, so answers come from a small one of
 * the test's own, and so does what a game client sends.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { filterSet } from '@levee/core/nftables/names.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath } from './filtered-path.ts';
import { answerFor, ask, exchange } from './games/on-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 7777;
const uuid = '00000000-0000-7000-8000-000000000016';
const [request, game] = ['081e77da', '88a419c05be37702'];

function query(address: string, named: number, letter = 'i'): Uint8Array {
  return Buffer.from([
    ...Buffer.from('SAMP'),
    ...address.split('.').map(Number),
    named & 255,
    named >> 8,
    letter.charCodeAt(0),
  ]);
}

/** In the place of the filters of the path: one for IPv4. */
function filter(path: FilteredPath, fields: object): void {
  const parsed = parseFilter({ filter: 16, ...fields }, { uuid, sequence: 1 });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  path.router.loadNft(createCompiler().replace([parsed.filter], '0'.repeat(16)).text);
  path.router.loadNft(`flush set inet levee ${filterSet('settling', uuid)}\n`);
}

test('a list asks and a player comes in through the filter, junk beside them is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('samp');
  using strangers = new Strangers(path);
  filter(path, { dst: '203.0.113.7' });
  await answerFor(path, 'samp', port);
  const unwanted = [Buffer.from(game, 'hex'), ...junk(200, 40), ...junk(100, 11, '53414d50'), ...junk(100, 30, '88')];
  const [listed, arrived] = await Promise.all([ask(path, 'samp', port), strangers.send(port, unwanted)]);
  assert.deepEqual(listed, { name: 'Levee test server', players: ['Carl'] });
  assert.equal(arrived, 0);
  assert.deepEqual(await exchange(path, 4, port, [request, game, game]), [request, game, game]);
});

test('in a subnet and a range of ports each query still has to name its own address and port', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('samp-subnet');
  using strangers = new Strangers(path);
  for (const dst of ['203.0.113.0/24', '203.0.113.4/30', '203.0.113.7']) {
    filter(path, { dst, port: { dst: { start: 7000, end: 7999 } } });
    for (const to of [7000, 7777, 7999]) {
      assert.equal(await strangers.send(to, [query('203.0.113.7', to)]), 1, `${dst}, port ${to}`);
      const others = Array.from({ length: 32 }, (_, bit) => {
        const value = (0xcb007107 ^ (1 << bit)) >>> 0;
        return [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join('.');
      });
      const wrong = [
        ...others.map((address) => query(address, to)),
        ...Array.from({ length: 16 }, (_, bit) => query('203.0.113.7', to ^ (1 << bit))),
      ];
      assert.equal(await strangers.send(to, wrong), 0, `${dst}, port ${to}, each bit wrong once`);
    }
  }
});
