import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { after, before, beforeEach, describe, test } from 'node:test';
import { enterOwnNamespace, nft } from '../../testing/own-namespace.ts';
import { until } from '../../testing/until.ts';
import { openNftLibrary } from './library.ts';
import { openNetlink } from './netlink.ts';
import type { NftDriver, NftKernel } from './port.ts';

const skip = enterOwnNamespace() ?? false;

describe('reading the kernel over netlink', { skip }, () => {
  let kernel: NftKernel;
  let driver: NftDriver;
  before(() => {
    kernel = openNetlink('levee');
    driver = openNftLibrary('1.0.6');
  });
  after(async () => {
    kernel.close();
    await driver.close();
  });
  beforeEach(() => {
    nft(`
      add table inet levee
      delete table inet levee
      table inet levee {
        map m { type ipv4_addr : verdict; elements = { 127.0.0.1 : goto a, 192.0.2.9 : goto b }; }
        chain out { type filter hook output priority 0; ip daddr vmap @m; }
        chain a { udp dport 9 counter accept; udp dport 10 drop; udp dport 11 counter drop; }
        chain b { counter; }
      }
    `);
    kernel.foreignChange();
  });
  const apply = async (text: string, whole = false): Promise<void> => {
    kernel.beginOwn(whole);
    const result = await driver.apply(text);
    kernel.endOwn();
    assert.deepEqual(result, { ok: true, output: '' });
  };

  test('whether the table is there is asked by its name', () => {
    assert.equal(kernel.isTableLoaded(), true);
    nft('delete table inet levee\ntable inet other { }\n');
    assert.equal(kernel.isTableLoaded(), false);
  });

  test('comments are those of the rules of one chain that have one, in order, whatever else is in their user data', () => {
    nft(
      'add chain inet levee c { counter comment "first"; counter; ip saddr . ip daddr vmap { 192.0.2.1 . 192.0.2.2 : drop } comment "0123456789abcdef"; }',
    );
    assert.deepEqual(kernel.comments('c'), ['first', '0123456789abcdef']);
    assert.deepEqual(kernel.comments('b'), []);
    assert.deepEqual(kernel.comments('nowhere'), []);
  });

  test('counters are those of the counted rules alone, in order, to the packet and byte', async () => {
    const socket = createSocket('udp4');
    try {
      const send = (port: number): Promise<void> =>
        new Promise((resolve) => socket.send(Buffer.alloc(72), port, '127.0.0.1', () => resolve()));
      for (let sent = 0; sent < 5; sent++) await send(9);
      for (let sent = 0; sent < 3; sent++) await send(11);
      await until('all were counted', () => kernel.chainCounters('a')[1]?.packets === 3);
      const expected = [
        { packets: 5, bytes: 500 },
        { packets: 3, bytes: 300 },
      ];
      assert.deepEqual(kernel.chainCounters('a'), expected);
      for (const pace of ['quick', 'gentle'] as const) {
        const all = await kernel.allChainCounters(pace);
        assert.deepEqual([...all].sort(), [
          ['a', expected],
          ['b', [{ packets: 0, bytes: 0 }]],
        ]);
      }
    } finally {
      socket.close();
    }
  });

  test('a dump over many datagrams misses no rule and repeats none', async () => {
    const chains = Array.from({ length: 300 }, (_, n) => `chain x${n} { ${'counter; '.repeat(n % 7)} }`);
    nft(`table inet levee {\n${chains.join('\n')}\n}\n`);
    const all = await kernel.allChainCounters('quick');
    for (let n = 0; n < 300; n++) assert.equal(all.get(`x${n}`)?.length ?? 0, n % 7, `x${n}`);
  });

  test('what is not there has no counters and no elements', async () => {
    assert.deepEqual(kernel.chainCounters('nowhere'), []);
    assert.equal(await kernel.elements('nowhere'), undefined);
  });

  test('elements come with key and target', async () => {
    const elements = (await kernel.elements('m')) ?? [];
    assert.deepEqual(elements.map(({ key, chain }) => [key, chain]).sort(), [
      ['7f000001', 'a'],
      ['c0000209', 'b'],
    ]);
  });

  test('the generation rises by one with each transaction, and not with a refused one', async () => {
    const before = kernel.generation();
    nft('add chain inet levee c');
    assert.equal(kernel.generation(), before + 1);
    assert.equal((await driver.apply('delete chain inet levee nowhere\n')).ok, false);
    assert.equal(kernel.generation(), before + 1);
  });

  test('our own transactions are never taken for foreign ones', async () => {
    for (let n = 0; n < 20; n++) await apply(`add chain inet levee c${n}\nadd rule inet levee c${n} counter\n`);
    await apply('flush chain inet levee c0\n', true);
    assert.equal(kernel.foreignChange(), 'none');
  });

  for (const [what, text] of [
    ['a rule', 'add rule inet levee b drop'],
    ['an element', 'delete element inet levee m { 192.0.2.9 }'],
    ['a chain', 'add chain inet levee foreign'],
    ['everything', 'flush ruleset'],
  ] as const) {
    test(`somebody else's change of ${what} is noticed once`, () => {
      nft(text);
      assert.equal(kernel.foreignChange(), 'changed');
      assert.equal(kernel.foreignChange(), 'none');
    });
  }

  test("changes of other programs' tables are none of ours", () => {
    nft('table inet other {\nchain levee { type filter hook input priority 0; }\n}\n');
    nft('delete table inet other');
    assert.equal(kernel.foreignChange(), 'none');
  });

  test('a foreign change between two of ours is noticed', async () => {
    await apply('add chain inet levee c\n');
    nft('add rule inet levee c drop');
    await apply('add chain inet levee d\n');
    assert.equal(kernel.foreignChange(), 'changed');
  });

  test('a foreign change while one of ours is under way is noticed', async () => {
    kernel.beginOwn(false);
    await driver.apply('add chain inet levee c\n');
    nft('add rule inet levee b drop');
    kernel.endOwn();
    assert.equal(kernel.foreignChange(), 'changed');
  });

  test('a foreign change during a full load of ours leaves a doubt', async () => {
    kernel.beginOwn(true);
    await driver.apply('add chain inet levee c\n');
    nft('add rule inet levee b drop');
    kernel.endOwn();
    assert.equal(kernel.foreignChange(), 'lost');
  });
});
