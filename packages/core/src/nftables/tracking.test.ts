import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Rule } from '../firewall/rule.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { createCompiler } from './compiler.ts';
import { prefixChain, prefixKey } from './names.ts';
import { kernelObstacle, type TestNamespace } from './testing/kernel-table.ts';
import { ruleUuid } from './testing/random-rules.ts';
import { inside, outside, RoutedPath } from './testing/routed-path.ts';

const mark = '00000000000000aa';

let rules = 0;
function rule(dst: string, fields: Partial<Rule>): Rule {
  rules += 1;
  const prefix = prefixFromTrusted(dst);
  return {
    uuid: ruleUuid(rules),
    sequence: rules,
    priority: 1000,
    dst: prefix,
    protocol: 'any',
    action: 'drop',
    disabled: false,
    ...fields,
  };
}

/** Prints `yes` when a TCP connection comes about, `silence` when nothing has answered by the deadline. */
function connecting(to: string, port: number, from: string, deadlineMs = 10_000): string {
  return `import { connect } from 'node:net';
    const socket = connect({ host: '${to}', port: ${port}, localAddress: '${from}' });
    const end = (answer) => { console.log(answer); process.exit(); };
    socket.on('connect', () => end('yes')).on('error', (error) => end(error.code));
    setTimeout(() => end('silence'), ${deadlineMs});`;
}

function listening(address: string, port: number): string {
  return `import { createServer } from 'node:net';
    createServer((socket) => socket.on('error', () => {})).listen(${port}, '${address}', () => console.log('ready'));`;
}

/** Prints the length of each datagram. */
function receiving(address: string, port: number): string {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  return `import { createSocket } from 'node:dgram';
    const socket = createSocket('${type}');
    socket.on('message', (message) => console.log(message.length));
    socket.bind(${port}, '${address}', () => console.log('ready'));`;
}

/** Sends datagrams of these lengths, one after the other. */
function sending(address: string, port: number, lengths: readonly number[], fill = '00'): string {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  return `import { createSocket } from 'node:dgram';
    const socket = createSocket('${type}');
    for (const length of ${JSON.stringify(lengths)}) {
      await new Promise((done) => socket.send(Buffer.alloc(length, '${fill}', 'hex'), ${port}, '${address}', done));
    }
    socket.close();`;
}

describe('what conntrack sees', { skip: kernelObstacle() ?? false }, () => {
  let path: RoutedPath;

  before(() => {
    path = new RoutedPath();
  });
  after(() => path[Symbol.asyncDispose]());

  function load(...present: Rule[]): void {
    path.router.load(createCompiler().replace(present, mark).text);
  }

  function trackedFlows(namespace: TestNamespace): number {
    return Number(namespace.run('cat', ['/proc/sys/net/netfilter/nf_conntrack_count']));
  }

  for (const family of [4, 6] as const) {
    it(`IPv${family}: a flow that the destination opened is established, one from outside is not`, async () => {
      const [mine] = inside[family];
      const onlyReplies = [
        rule(mine, { connectionState: 'established', action: 'accept', priority: 1 }),
        rule(mine, { action: 'drop', priority: 2 }),
      ];
      load(...onlyReplies);
      await path.start(path.outside, listening(outside[family], 4000));
      await path.start(path.inside, listening(mine, 4001));
      assert.equal(path.run(path.inside, connecting(outside[family], 4000, mine)), 'yes');
      assert.equal(path.run(path.outside, connecting(mine, 4001, outside[family], 1500)), 'silence');
    });

    it(`IPv${family}: traffic of a destination without such rules leaves no trace in conntrack`, async () => {
      const [stateful, plain] = inside[family];
      load(rule(stateful, { connectionState: 'invalid' }), rule(plain, { protocol: 'udp' }));
      await path.start(path.inside, listening(plain, 4002));
      const before = trackedFlows(path.router);
      assert.equal(path.run(path.outside, connecting(plain, 4002, outside[family])), 'yes');
      assert.ok(trackedFlows(path.router) <= before, 'a flow was tracked');
    });
  }

  it('what the router itself receives stays tracked, for whatever other tables it has', async () => {
    const [stateful, plain] = inside[4];
    load(rule(stateful, { connectionState: 'invalid' }));
    path.router.load(
      'table inet own { chain in { type filter hook input priority 0; policy drop; ct state 2 accept; }; }\n',
    );
    try {
      await path.start(path.inside, listening(plain, 4003));
      assert.equal(path.run(path.router, connecting(plain, 4003, '203.0.113.1')), 'yes');
    } finally {
      path.router.load('delete table inet own\n');
    }
  });

  const states = [
    { title: 'tracked, so that fragments are put together before', extra: { connectionState: 'invalid' } },
    { title: 'not tracked', extra: { packetLengthBytes: 65535 } },
  ] as const;
  for (const [index, { title, extra }] of states.entries()) {
    it(`ipv6-frag matches fragments of a destination that is ${title}`, async () => {
      const [mine] = inside[6];
      const port = 4100 + index;
      const frag = { protocol: 'ipv6-frag', priority: 2 } as const;
      load(rule(mine, { ...extra, priority: 1 }), rule(mine, { ...frag, action: 'drop' }));
      const lengths = await path.start(path.inside, receiving(mine, port));
      path.run(path.outside, sending(mine, port, [3000, 100]));
      assert.equal((await lengths.next()).value, '100');

      load(
        rule(mine, { ...extra, priority: 1 }),
        rule(mine, { ...frag, action: 'accept' }),
        rule(mine, { protocol: 'udp' }),
      );
      path.run(path.outside, sending(mine, port, [100, 3000]));
      assert.equal((await lengths.next()).value, '3000');
    });
  }

  for (const family of [4, 6] as const) {
    it(`IPv${family}: fragments of a destination that is not tracked stay apart; only the first shows ports`, async () => {
      const [stateful, plain] = inside[family];
      const transport = { protocol: 'udp', action: 'continue' } as const;
      const port = { start: 4200, end: 4200 };
      load(
        rule(stateful, { connectionState: 'invalid' }),
        rule(plain, { ...transport, destinationPorts: port }),
        rule(plain, { ...transport, sourcePorts: { start: 4200, end: 65535 } }),
        rule(plain, transport),
      );
      await path.start(path.inside, receiving(plain, 4200));
      // Data that would be that port, wherever it is looked for.
      path.run(path.outside, sending(plain, 4200, [4000], '1068'));
      const chain = prefixChain('c', prefixKey(prefixFromTrusted(plain)));
      const counted = [...path.router.list('chain', 'inet', 'levee', chain).matchAll(/counter packets (\d+)/g)];
      // 4 008 octets of UDP are three packets.
      assert.deepEqual(
        counted.map((match) => match[1]),
        ['1', '1', '3'],
      );
    });
  }
});
