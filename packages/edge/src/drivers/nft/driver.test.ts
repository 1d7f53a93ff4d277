import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { enterOwnNamespace } from '../../testing/own-namespace.ts';
import { openNftCommand } from './command.ts';
import { createFakeNft } from './fake.ts';
import { openNftLibrary } from './library.ts';
import type { NftDriver } from './port.ts';

const skip = enterOwnNamespace() ?? false;

const drivers: [name: string, skip: string | false, open: () => NftDriver][] = [
  ['libnftables', skip, () => openNftLibrary('1.0.6')],
  ['the nft command', skip, () => openNftCommand('1.0.6')],
  ['the fake', false, () => createFakeNft().open().driver],
];

for (const [name, leaveOut, open] of drivers) {
  describe(`nftables by ${name}`, { skip: leaveOut }, () => {
    const driver = leaveOut ? undefined : open();
    after(() => driver?.close());
    const nft = (): NftDriver => driver as NftDriver;
    const fresh = 'add table inet levee\ndelete table inet levee\nadd table inet levee\n';
    const refuses = async (text: string, expected: RegExp): Promise<void> => {
      const result = await nft().apply(text);
      assert.equal(result.ok, false);
      assert.match(result.ok ? '' : result.message, expected);
    };

    test('a transaction is done whole, and is there to be listed', async () => {
      const text = `${fresh}add chain inet levee a\nadd rule inet levee a counter drop\n`;
      assert.deepEqual(await nft().apply(text), { ok: true, output: '' });
      const listed = await nft().list('chain inet levee a');
      assert.ok(listed.ok);
      assert.match(listed.output, /counter.*drop/);
    });

    test('of a transaction with one bad statement nothing is done, and nft says why', async () => {
      await nft().apply(`${fresh}add chain inet levee a\n`);
      await refuses('add rule inet levee a accept\nadd rule inet levee nowhere drop\n', /No such file or directory/);
      const listed = await nft().list('chain inet levee a');
      assert.doesNotMatch(listed.ok ? listed.output : '', /accept/);
    });

    test('a check judges like an application and changes nothing', async () => {
      await nft().apply(`${fresh}add chain inet levee a\n`);
      const good = 'add rule inet levee a goto b\n';
      assert.equal((await nft().check(good)).ok, false);
      assert.equal((await nft().check(`add chain inet levee b\n${good}`)).ok, true);
      assert.equal((await nft().list('chain inet levee b')).ok, false);
    });

    test('a chain that is referred to cannot be deleted', async () => {
      await nft().apply(
        `${fresh}add chain inet levee a\nadd map inet levee m { type ipv4_addr : verdict; }\nadd element inet levee m { 192.0.2.1 : goto a }\n`,
      );
      await refuses('delete chain inet levee a\n', /Device or resource busy/);
      const together = 'delete element inet levee m { 192.0.2.1 }\ndelete chain inet levee a\n';
      assert.equal((await nft().apply(together)).ok, true);
    });

    test('an element that is there with another verdict is refused, one that is not there cannot be taken out', async () => {
      await nft().apply(
        `${fresh}add chain inet levee a\nadd chain inet levee b\nadd map inet levee m { type ipv4_addr : verdict; }\nadd element inet levee m { 192.0.2.1 : goto a }\n`,
      );
      await refuses('add element inet levee m { 192.0.2.1 : goto b }\n', /File exists/);
      await refuses('delete element inet levee m { 192.0.2.2 }\n', /No such file or directory/);
    });

    test('a table in block form may name its parts in any order', async () => {
      const block = `${fresh}table inet levee {\nset s {\ntype ipv4_addr\nelements = { 192.0.2.1,\n192.0.2.2 }\n}\nchain a {\ngoto b\n}\nchain b {\ncounter\n}\n}\n`;
      assert.equal((await nft().apply(block)).ok, true);
      const listed = await nft().list('set inet levee s');
      assert.match(listed.ok ? listed.output : '', /192\.0\.2\.1, 192\.0\.2\.2/);
    });

    test('calls that overlap are done in the order of asking', async () => {
      await nft().apply(fresh);
      const results = await Promise.all([
        nft().apply('add chain inet levee one\n'),
        nft().apply('add rule inet levee one counter\n'),
        nft().apply('flush chain inet levee one\n'),
        nft().apply('delete chain inet levee one\n'),
      ]);
      assert.deepEqual(
        results.map(({ ok }) => ok),
        [true, true, true, true],
      );
    });
  });
}
