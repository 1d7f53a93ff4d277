import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { filterKinds } from '../filter/catalogue.ts';
import type { Entry } from '../filter/entry.ts';
import { createCompiler } from './compiler.ts';
import { kindPortsCondition } from './kind-ports.ts';
import { filterSet } from './names.ts';
import { kernelObstacle } from './testing/kernel-table.ts';
import { inside, outside, RoutedPath } from './testing/routed-path.ts';
import { testFilter } from './testing/test-filter.ts';
import { answeredKind, establishedKind, proxyKind, rememberingKind } from './testing/test-kinds.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '00000000000000ab';
const servers = [80, 443, 8080];

/** Prints `yes` when a TCP connection comes about. */
function connecting(to: string, port: number): string {
  return `import { connect } from 'node:net';
    const socket = connect({ host: '${to}', port: ${port} });
    const end = (answer) => { console.log(answer); process.exit(); };
    socket.on('connect', () => end('yes')).on('error', (error) => end(error.code));`;
}

function listening(ports: readonly number[]): string {
  return `import { createServer } from 'node:net';
    for (const port of ${JSON.stringify(ports)}) {
      await new Promise((done) => createServer((socket) => socket.on('error', () => {})).listen(port, '::', done));
    }
    console.log('ready');`;
}

/** Prints the length of each datagram. */
function receiving(address: string, port: number): string {
  return `import { createSocket } from 'node:dgram';
    const socket = createSocket('${address.includes(':') ? 'udp6' : 'udp4'}');
    socket.on('message', (message) => console.log(message.length));
    socket.bind(${port}, '${address}', () => console.log('ready'));`;
}

/** Sends one datagram, filled with these octets. */
function sending(to: string, port: number, length: number, fill = '00', from = 0): string {
  const type = to.includes(':') ? 'udp6' : 'udp4';
  return `import { createSocket } from 'node:dgram';
    const socket = createSocket('${type}');
    await new Promise((done) => socket.bind(${from}, done));
    await new Promise((done) => socket.send(Buffer.alloc(${length}, '${fill}', 'hex'), ${port}, '${to}', done));
    socket.close();`;
}

describe('filters in the kernel', { skip: kernelObstacle() ?? false }, () => {
  let path: RoutedPath;
  before(() => {
    path = new RoutedPath();
    return path.start(path.inside, listening(servers));
  });
  after(() => path[Symbol.asyncDispose]());

  function load(...entries: Entry[]): void {
    path.router.load(createCompiler().replace(entries, mark).text);
  }

  /** Adds rules without verdict that count, in a table of the test's own; the counts of those. */
  function counting(hook: string, ...conditions: string[]): () => number[] {
    const lines = conditions.map((condition) => `${condition} counter;`).join('\n');
    path.router.load(`add table inet own\ndelete table inet own
      table inet own { chain seen { type filter hook ${hook}; policy accept;\n${lines}\n}\n}\n`);
    return () =>
      [...path.router.list('table', 'inet', 'own').matchAll(/counter packets (\d+)/g)].map((match) => Number(match[1]));
  }

  for (const family of [4, 6] as const) {
    it(`IPv${family}: conntrack sees what filters of the narrow prefix or the wide one look at, but a proxy's SYNs, and no more`, () => {
      const [mine, other] = inside[family];
      const wide = family === 4 ? '203.0.113.0/24' : '2001:db8:b::/64';
      const on = (port: number) => ({ destinationPorts: { start: port, end: port } });
      load(
        testFilter(1, mine, proxyKind, on(443)),
        testFilter(2, wide, proxyKind, on(80)),
        testFilter(3, mine, establishedKind, on(8080)),
      );
      const rows = ['dport', 'sport'].flatMap((side) => servers.map((port) => `tcp ${side} ${port}`));
      // Of FIN, SYN, RST and ACK, SYN alone; state untracked is 64, new 8.
      const columns = ['== 2 ct state 64', '== 2 ct state 8', '!= 2 ct state 64', '!= 2 ct state 2'];
      const seen = counting(
        'forward priority -5',
        ...rows.flatMap((row) => columns.map((column) => `${row} @th,88,24 & 0x17 ${column}`)),
      );
      /** By row, which columns have counted. */
      const found = () => {
        const counts = seen().map((count) => (count > 0 ? 'x' : '-'));
        return rows.map((_, index) => counts.slice(4 * index, 4 * index + 4).join(''));
      };
      for (const port of servers) assert.equal(path.run(path.outside, connecting(mine, port)), 'yes');
      assert.deepEqual(found(), ['x--x', 'x--x', '-x-x', '---x', '---x', '---x']);
      for (const port of servers) assert.equal(path.run(path.outside, connecting(other, port)), 'yes');
      assert.deepEqual(found(), ['x--x', 'x-xx', 'xxxx', '---x', '--xx', '--xx']);
    });

    it(`IPv${family}: fragments are put together or not by their transport, as they show no ports`, async () => {
      const [mine] = inside[family];
      const datagrams = await path.start(path.inside, receiving(mine, 4000));
      const seen = counting('forward priority -5', 'meta l4proto 17 ct state 64', 'meta l4proto 17 ct state 8');
      load(testFilter(1, mine, proxyKind));
      path.run(path.outside, sending(mine, 4000, 4000));
      assert.equal((await datagrams.next()).value, '4000');
      assert.deepEqual(seen(), [3, 0]);
      // It looks at another port than the datagram's.
      load(testFilter(1, mine, answeredKind, { destinationPorts: { start: 9, end: 9 } }));
      path.run(path.outside, sending(mine, 4000, 4000));
      assert.equal((await datagrams.next()).value, '4000');
      assert.deepEqual(seen(), [3, 1]);
    });
  }

  it('the router’s own connections stay tracked inside a prefix with a proxy', async () => {
    load(testFilter(1, '203.0.113.0/24', proxyKind));
    const seen = counting('input priority -5', 'tcp dport 80 ct state 64', 'tcp dport 80 ct state 8');
    await path.start(path.router, listening([80]));
    assert.equal(path.run(path.outside, connecting('203.0.113.1', 80)), 'yes');
    assert.deepEqual(seen(), [0, 1]);
  });

  it('src narrows which SYNs conntrack does not see', () => {
    const [mine] = inside[4];
    const elsewhere = { family: 4, start: 0x0a000000n, end: 0x0a0000ffn } as const;
    load(testFilter(1, mine, proxyKind, { src: elsewhere }), testFilter(2, mine, establishedKind));
    const seen = counting('forward priority -5', 'tcp dport 80 @th,88,24 & 0x17 == 2 ct state 64');
    assert.equal(path.run(path.outside, connecting(mine, 80)), 'yes');
    assert.deepEqual(seen(), [0]);
  });

  it('what packets wrote into a filter’s sets is there after changes around it, and gone with it', () => {
    const [mine, other] = inside[4];
    const filter = testFilter(1, mine, rememberingKind);
    const known = filterSet('known', filter.uuid);
    const compiler = createCompiler();
    const apply = (plan: { text: string; commit(): void }): void => {
      path.router.load(plan.text);
      plan.commit();
    };
    apply(compiler.replace([filter, testFilter(2, '203.0.113.0/24', proxyKind)], mark));
    // The first octet opens, for everybody that this kind meets.
    path.run(path.outside, sending(mine, 4000, 8, '01'));
    const remembered = () => path.router.list('set', 'inet', 'levee', known).includes(`${outside[4]} . ${mine}`);
    assert.ok(remembered());
    apply(
      compiler.change(
        { upsert: [testFilter(3, mine, proxyKind), testRule(4, mine, { protocol: 'tcp' })], remove: [] },
        mark,
      ),
    );
    apply(
      compiler.change(
        { upsert: [{ ...filter, rateLimitMegabitsPerSecond: 5 }], remove: [testFilter(3, other, proxyKind).uuid] },
        mark,
      ),
    );
    assert.ok(remembered());
    apply(compiler.change({ upsert: [{ ...filter, sourcePorts: { start: 9, end: 9 } }], remove: [] }, mark));
    assert.ok(!remembered());
    apply(compiler.change({ upsert: [], remove: [filter.uuid] }, mark));
    assert.doesNotMatch(path.router.list('table', 'inet', 'levee'), new RegExp(known));
  });

  for (const family of [4, 6] as const) {
    it(`IPv${family}: many ports are looked up in the first fragment alone`, () => {
      const [mine] = inside[family];
      load();
      const condition = kindPortsCondition(3, 'udp', 'src');
      path.router.load(`add chain inet levee looking { type filter hook forward priority 9; }
        add rule inet levee looking meta l4proto 17 counter
        add rule inet levee looking meta l4proto 17 ${condition} counter\n`);
      // 3 fragments, whose data would be port 53 wherever it is looked for; then another port, and a whole datagram.
      path.run(path.outside, sending(mine, 4000, 4000, '0035', 53));
      path.run(path.outside, sending(mine, 4000, 8, '0035', 54));
      path.run(path.outside, sending(mine, 4000, 8, '0000', 11211));
      const counts = [...path.router.list('chain', 'inet', 'levee', 'looking').matchAll(/counter packets (\d+)/g)];
      assert.deepEqual(
        counts.map((match) => match[1]),
        ['5', '2'],
      );
    });
  }

  it('every kind loads, in each family that it protects, with all that a request may say', () => {
    const entries = filterKinds.flatMap((kind, index) =>
      kind.families.map((family) => {
        const src = family === 4 ? { start: 0x0a000000n, end: 0x0a0000ffn } : { start: 1n << 100n, end: 1n << 110n };
        const ports = kind.destinationPorts === 'none' ? {} : { destinationPorts: { start: 4000, end: 4010 } };
        return testFilter(index * 10 + family, inside[family][0], kind, {
          src: { family, ...src },
          ...ports,
          rateLimitMegabitsPerSecond: 25_000,
        });
      }),
    );
    load(...entries);
    const table = path.router.list('table', 'inet', 'levee');
    assert.equal(table.match(/chain f_discard_/g)?.length, entries.length);
    // What packets write to is bounded, by us or by the kernel, and goes by itself.
    const written = [...table.matchAll(/set f_\w+ \{\n([^}]*?flags dynamic[^}]*?)\}/g)].map((match) => match[1] ?? '');
    assert.ok(written.length > entries.length);
    for (const set of written) assert.match(set, /\bsize [1-9]\d{0,4}\n\s+flags dynamic,timeout\n\s+timeout \d/);
  });
});
