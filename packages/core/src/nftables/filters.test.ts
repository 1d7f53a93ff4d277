import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { filterKinds } from '../filter/catalogue.ts';
import type { Entry } from '../filter/entry.ts';
import type { Filter } from '../filter/filter.ts';
import type { FilterKind } from '../filter/filter-kind.ts';
import { dns } from '../filter/kinds/dns.ts';
import { udpAmplification } from '../filter/kinds/udp-amplification.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { type Compiler, createCompiler } from './compiler.ts';
import { filterProgram } from './filter-text.ts';
import { kindPortSets, kindPortsCondition } from './kind-ports.ts';
import { filterSet } from './names.ts';
import { testFilter } from './testing/test-filter.ts';
import { answeredKind, establishedKind, proxyKind, rememberingKind } from './testing/test-kinds.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '0123456789abcdef';

/** A compiler that holds these entries, and the text that loaded them. */
function loaded(entries: readonly Entry[], options = {}): { compiler: Compiler; text: string } {
  const compiler = createCompiler(options);
  const plan = compiler.replace(entries, mark);
  plan.commit();
  return { compiler, text: plan.text };
}

/** The lines of one chain of a whole table's text; filters as `filter <last digits of the uuid>`. */
function chain(text: string, name: string): string[] | undefined {
  const block = text.split(`\nchain ${name} {\n`)[1];
  return block
    ?.slice(0, block.indexOf('}'))
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace(/^jump f_in_.{20}0*(.+)$/, 'filter $1'));
}

function named(part: string, filter: Filter): string {
  return `f_${part}_${filter.uuid.replaceAll('-', '')}`;
}

describe('filters among rules', () => {
  it('stand behind every rule of every covering prefix, by priority, then creation', () => {
    const { text } = loaded([
      testFilter(1, '203.0.113.7', dns, { priority: 5 }),
      testFilter(2, '203.0.113.0/24', dns, { priority: 2 }),
      testFilter(3, '203.0.113.7', dns, { priority: 2 }),
      testRule(4, '203.0.0.0/16', { protocol: 'tcp', priority: 2_000_000 }),
      testRule(5, '203.0.113.7', { protocol: 'udp', priority: 10 }),
    ]);
    const [udp, tcp] = ['meta l4proto 17 counter drop', 'meta l4proto 6 counter drop'];
    assert.deepEqual(chain(text, 'c4_cb007107_32'), [udp, tcp, 'filter 2', 'filter 3', 'filter 1']);
    assert.deepEqual(chain(text, 'c4_cb007100_24'), [tcp, 'filter 2']);
    assert.deepEqual(chain(text, 'c4_cb000000_16'), [tcp]);
  });

  it('are cut off by a rule that lets nothing past, and cut nothing off themselves', () => {
    const accept = testRule(1, '203.0.113.8', { action: 'accept' });
    const filters = [2, 3].map((number) => testFilter(number, '203.0.113.0/24', dns));
    const { text } = loaded([accept, ...filters, testFilter(4, '203.0.113.9', dns)]);
    assert.deepEqual(chain(text, 'c4_cb007108_32'), ['counter accept']);
    assert.deepEqual(chain(text, 'c4_cb007109_32'), ['filter 2', 'filter 3', 'filter 4']);
  });

  it('never take part at ingress', () => {
    const broadcast = testRule(1, '203.0.113.7', { packetType: 'broadcast' });
    const { text } = loaded([broadcast, testFilter(2, '203.0.113.7', dns)], { ingressDevices: ['eth0'] });
    assert.deepEqual(chain(text, 'i4_cb007107_32'), ['meta pkttype 1 counter drop']);
    assert.deepEqual(chain(text, 'c4_cb007107_32'), ['filter 2']);
  });

  it('20 of a /16 are one line each, or a run, however many destinations lie inside', () => {
    const wide = Array.from({ length: 20 }, (_, index) => testFilter(index, '10.0.0.0/16', rememberingKind));
    const narrow = Array.from({ length: 5000 }, (_, index) =>
      testRule(1000 + index, `10.0.${index >> 8}.${index & 255}`, { protocol: 'udp', packetLengthBytes: 1 + index }),
    );
    const { compiler, text } = loaded([...wide, ...narrow]);
    assert.ok((text.match(/^jump f_in_/gm)?.length ?? 0) < 100);
    assert.equal(text.match(/^chain f_discard_/gm)?.length, 20);
    // Its own rule, and the run.
    assert.ok((text.match(/^(meta|jump) /gm)?.length ?? 0) < 5000 * 2 + 200);
    const gone = compiler.change({ upsert: [], remove: [wide[7]?.uuid ?? ''] }, mark);
    assert.ok(gone.flushedChains.length < 20, gone.flushedChains.join(' '));
  });
});

describe('what belongs to one filter alone', () => {
  const filter = testFilter(1, '203.0.113.7', rememberingKind, { rateLimitMegabitsPerSecond: 10 });
  const sets = ['meter_source', 'known', 'settling'].map((part) => filterSet(part, filter.uuid));

  it('comes with it and goes with it, in a table that is loaded too', () => {
    const { compiler } = loaded([]);
    const coming = compiler.change({ upsert: [filter], remove: [] }, mark);
    for (const name of sets)
      assert.match(coming.text, new RegExp(`^add set inet levee ${name} \\{ type .*; \\}$`, 'm'));
    coming.commit();
    const going = compiler.change({ upsert: [], remove: [filter.uuid] }, mark);
    for (const name of sets) assert.match(going.text, new RegExp(`^delete set inet levee ${name}$`, 'm'));
    const parts = ['in', 'udp', 'icmp', 'branch_opens', 'pass', 'discard'];
    for (const part of parts)
      assert.match(going.text, new RegExp(`^delete chain inet levee ${named(part, filter)}$`, 'm'));
    going.commit();
    assert.equal(compiler.entryCount, 0);
    assert.deepEqual(compiler.counterOwners(named('discard', filter)), []);
  });

  it('settles from the moment on when it is made, by a change as by a whole load, and by nothing later', () => {
    const element = new RegExp(`${filterSet('settling', filter.uuid)} \\{[^}]* 2 timeout 10s \\}`);
    const { compiler, text } = loaded([filter]);
    assert.match(text, element);
    assert.doesNotMatch(compiler.change({ upsert: [{ ...filter, priority: 7 }], remove: [] }, mark).text, /settling/);
    assert.match(createCompiler().change({ upsert: [filter], remove: [] }, mark).text, element);
    const added = loaded([]).compiler.change({ upsert: [filter], remove: [] }, mark).text;
    assert.match(added, /^add set inet levee f_settling_\w+ \{ .* elements = \{ 2 timeout 10s \}; \}$/m);
  });

  it('is not touched by changes of the entries around it', () => {
    const uuidDigits = [named('', filter), filterSet('', filter.uuid)].map((name) => name.replace('f__', ''));
    const { compiler } = loaded([filter, testRule(2, '203.0.113.0/24', { protocol: 'udp', priority: 1 })]);
    for (const upsert of [
      testRule(3, '203.0.113.7', { protocol: 'tcp', priority: 1 }),
      testFilter(4, '203.0.113.7', proxyKind),
      testFilter(5, '203.0.113.0/24', rememberingKind, { priority: 1 }),
    ]) {
      const plan = compiler.change({ upsert: [upsert], remove: [] }, mark);
      const touching = plan.text.split('\n').filter((line) => uuidDigits.some((digits) => line.includes(digits)));
      for (const line of touching) assert.match(line, /^jump f_in_/);
      plan.commit();
    }
  });

  it('keeps its memory when only its limit changes, and none when it looks at other traffic', () => {
    const { compiler } = loaded([filter]);
    const limit = compiler.change({ upsert: [{ ...filter, rateLimitMegabitsPerSecond: 20 }], remove: [] }, mark);
    assert.deepEqual(limit.flushedChains, [named('pass', filter)]);
    assert.doesNotMatch(limit.text, /(add|delete) set/);
    const port = { start: 4000, end: 4000 };
    for (const fields of [{ destinationPorts: port }, { dst: testFilter(1, '2001:db8::7', dns).dst }]) {
      const { text } = compiler.change({ upsert: [{ ...filter, ...fields }], remove: [] }, mark);
      for (const name of sets) {
        assert.match(text, new RegExp(`^delete set inet levee ${name}\\n[^]*^add set inet levee ${name} `, 'm'));
      }
      assert.match(text, /^add set inet levee f_settling_\w+ \{ .* elements = \{ (2|10) timeout 10s \}; \}$/m);
    }
  });

  it('is changed by words before which nft reads no chains and sets, and what is in them stays', () => {
    const rules = Array.from({ length: 3 }, (_, index) => testRule(20 + index, '203.0.113.0/24', { protocol: 'udp' }));
    const { compiler } = loaded([filter, testFilter(2, '2001:db8::/32', proxyKind)]);
    for (const upsert of [
      [testFilter(3, '203.0.113.8', dns)],
      [testFilter(4, '2001:db8::/32', proxyKind)],
      [{ ...filter, rateLimitMegabitsPerSecond: 20 }],
      [testFilter(3, '203.0.113.8', dns, { rateLimitMegabitsPerSecond: 5 })],
      rules,
    ]) {
      const plan = compiler.change({ upsert, remove: [] }, mark);
      assert.ok(plan.text.length > 0);
      assert.doesNotMatch(plan.text, /^(delete|flush set|(add|insert) (rule|element)) /m);
      plan.commit();
    }
  });

  it('has no set for what bounds the one address that it protects: lines share a bucket, or have the only one', () => {
    const asking = (lines: (above: string, discard: string) => readonly string[], dst = '203.0.113.7') => {
      const { enforcement } = rememberingKind;
      const kind: FilterKind = {
        ...rememberingKind,
        enforcement: { ...enforcement, compile: ({ above, discard }) => ({ udp: lines(above('sum'), discard) }) },
      };
      return loaded([testFilter(1, dst, kind)]).text;
    };
    const [limit, own] = ['limit rate over 50/second burst 50 packets', named('meter_sum', filter)];
    const discard = `goto ${named('discard', filter)}`;

    const once = asking((above) => [`${above} ${discard}`]);
    assert.deepEqual(chain(once, named('udp', filter)), [`${limit} ${discard}`, discard]);
    const twice = asking((above) => [`${above} ${discard}`, `@ih,0,8 1 ${discard}`, `${above} ${discard}`]);
    assert.deepEqual(chain(twice, named('udp', filter)), [
      `jump ${own}`,
      `@ih,0,8 1 ${discard}`,
      `jump ${own}`,
      discard,
    ]);
    assert.deepEqual(chain(twice, own), [`${limit} ${discard}`]);
    for (const text of [once, twice]) assert.doesNotMatch(text, /^set f_meter_sum_/m);

    const subnet = asking((above) => [`${above} ${discard}`], '203.0.113.6/31');
    assert.match(subnet, /^set f_meter_sum_/m);
    assert.doesNotMatch(subnet, /^limit rate/m);
  });

  it('counts for it, and is found behind every destination that its prefix covers', () => {
    const wide = Array.from({ length: 12 }, (_, index) => testFilter(10 + index, '203.0.0.0/16', dns));
    const { compiler } = loaded([filter, ...wide]);
    assert.deepEqual(compiler.counterOwners(named('discard', filter)), [[filter.uuid]]);
    assert.deepEqual(compiler.counterOwners('c4_cb007107_32'), []);
    const behind = compiler.countedChains(['c4_cb007107_32']);
    for (const each of [filter, ...wide]) assert.ok(behind.has(named('discard', each)), each.uuid);
    const behindWide = compiler.countedChains(['c4_cb000000_16']);
    assert.ok(
      !behindWide.has(named('discard', filter)) && wide.every((each) => behindWide.has(named('discard', each))),
    );
  });
});

describe('what a filter makes conntrack see', () => {
  /** By prefix: the lines of the chain to which packets to it are sent, or `all`. */
  const tracked = (text: string, map = 'td4_32') => {
    const elements = new RegExp(`\\nmap ${map} \\{\\n[^}]*elements = \\{ ([^}]*) \\}`).exec(text)?.[1] ?? '';
    return new Map(
      elements.split(',\n').map((element): [string, readonly string[] | string] => {
        const [, address = '', verdict = ''] = /^(\S+) : (.*)$/.exec(element) ?? [];
        return [address, verdict === 'goto track' ? 'all' : (chain(text, verdict.replace('jump ', '')) ?? [])];
      }),
    );
  };
  const fragments4 = '@nh,48,16 & 0x3fff != 0';

  it('is what it looks at, and what goes back', () => {
    const filter = testFilter(1, '203.0.113.7', proxyKind, {
      src: { family: 4, start: 1n << 24n, end: (2n << 24n) - 1n },
    });
    const { text } = loaded([filter, testFilter(2, '203.0.113.8', dns)]);
    const ports = [443, 80, 8443];
    assert.deepEqual(
      [...tracked(text)],
      [
        [
          '203.0.113.7',
          [
            `${fragments4} meta l4proto 6 @nh,96,8 0x1 goto track`,
            ...ports.map((port) => `meta l4proto 6 @th,8,24 & 0xffff == ${port} @nh,96,8 0x1 goto track`),
          ],
        ],
      ],
    );
    const back = [80, 443, 8443].map((port) => `@th,0,24 & 0xffff00 == 0x${(port * 256).toString(16)} @nh,128,8 0x1`);
    assert.deepEqual(
      [...tracked(text, 'ts4_32')],
      [
        [
          '203.0.113.7',
          [
            `${fragments4} meta l4proto 6 @nh,128,8 0x1 goto track`,
            ...back.sort().map((conditions) => `meta l4proto 6 ${conditions} goto track`),
          ],
        ],
      ],
    );
  });

  it('is of IPv6 the fragments of a transport, whatever is behind their header, and no others', () => {
    const { text } = loaded([testFilter(1, '2001:db8::7', answeredKind)]);
    const lines = ['frag nexthdr 17 goto track', 'exthdr frag exists return', 'meta l4proto 17 goto track'];
    assert.deepEqual([...tracked(text, 'td6_128').values()], [lines]);
    assert.deepEqual([...tracked(text, 'ts6_128').values()], [lines]);
  });

  it('is nothing of the transports whose connections its kind does not go by', () => {
    for (const kind of filterKinds.filter(({ enforcement }) => enforcement.tracks !== undefined)) {
      const { text } = loaded([testFilter(1, '203.0.113.7', kind)]);
      assert.deepEqual(kind.enforcement.tracks, ['tcp']);
      for (const line of tracked(text).get('203.0.113.7') ?? []) assert.match(line, /meta l4proto 6/, kind.name);
    }
  });

  it('is one chain for all prefixes of which it is the same, as long as there is one', () => {
    const filters = [1, 2, 3].map((number) => testFilter(number, `203.0.113.${number}`, answeredKind));
    const { compiler, text } = loaded(filters);
    assert.equal([...text.matchAll(/\nchain t_/g)].length, 1);
    const other = testFilter(3, '203.0.113.3', proxyKind);
    const changed = compiler.change({ upsert: [other], remove: [filters[0]?.uuid ?? ''] }, mark);
    // Ports stand on different sides, one way and back.
    assert.equal([...changed.text.matchAll(/^add chain inet levee t_[0-9a-f]+$/gm)].length, 2);
    assert.doesNotMatch(changed.text, /^delete chain inet levee t_/m);
    changed.commit();
    const last = compiler.change({ upsert: [], remove: [filters[1]?.uuid ?? ''] }, mark);
    assert.equal([...last.text.matchAll(/^delete chain inet levee t_/gm)].length, 1);
  });

  it('is all of its destination while a rule asks for states', () => {
    const filter = testFilter(1, '203.0.113.7', rememberingKind);
    const rule = testRule(2, '203.0.113.7', { connectionState: 'new' });
    const { compiler, text } = loaded([filter, testFilter(3, '203.0.113.8', dns), rule]);
    assert.deepEqual([...tracked(text)], [['203.0.113.7', 'all']]);
    const first = compiler.change({ upsert: [], remove: [rule.uuid] }, mark);
    assert.match(first.text, /^add map inet levee td4_32 .*203\.0\.113\.7 : jump t_/m);
    first.commit();
    const second = compiler.change({ upsert: [], remove: [filter.uuid] }, mark);
    for (const map of ['td4_32', 'ts4_32'])
      assert.match(second.text, new RegExp(`^delete map inet levee ${map}$`, 'm'));
  });

  it('is told where an entry needs more than there was, and of no other change', () => {
    const filter = testFilter(1, '203.0.113.7', establishedKind);
    const other = testFilter(2, '203.0.113.7', answeredKind);
    const first = createCompiler();
    const begins = (plan: { beginsTracking: readonly Filter['dst'][]; commit(): void }) => {
      plan.commit();
      return plan.beginsTracking.map((prefix) => formatPrefix(prefix));
    };
    assert.deepEqual(begins(first.replace([filter, testFilter(3, '203.0.113.8', dns)], mark)), ['203.0.113.7']);
    assert.deepEqual(begins(first.change({ upsert: [other], remove: [] }, mark)), []);
    assert.deepEqual(begins(first.replace([filter, other], mark)), []);
    assert.deepEqual(begins(first.change({ upsert: [], remove: [other.uuid] }, mark)), []);
    assert.deepEqual(begins(first.change({ upsert: [other], remove: [filter.uuid] }, mark)), []);
    assert.deepEqual(begins(first.change({ upsert: [filter], remove: [] }, mark)), ['203.0.113.7']);
    const stateful = testRule(6, '203.0.113.7', { connectionState: 'new' });
    assert.deepEqual(begins(first.change({ upsert: [stateful], remove: [] }, mark)), ['203.0.113.7']);
    assert.deepEqual(begins(first.change({ upsert: [], remove: [stateful.uuid] }, mark)), []);
    const wide = testFilter(5, '2001:db8::/64', rememberingKind);
    assert.deepEqual(begins(first.change({ upsert: [filter, wide], remove: [] }, mark)), ['2001:db8::/64']);
  });

  it('is all but the SYNs that a proxy answers: a chain a prefix, found by a map a length, longest first', () => {
    const { text, compiler } = loaded([
      testFilter(1, '203.0.113.7', proxyKind),
      testFilter(2, '203.0.113.0/24', proxyKind, { destinationPorts: { start: 25, end: 26 } }),
      testFilter(3, '2001:db8::/32', proxyKind, { src: { family: 6, start: 1n << 120n, end: 1n << 120n } }),
    ]);
    assert.equal(chain(text, 'hook_prerouting')?.[1], 'meta l4proto 6 @th,88,24 & 0x17 == 0x02 jump syns');
    assert.deepEqual(chain(text, 'syns'), [
      'ip daddr vmap @sm4_32',
      'ip daddr & 255.255.255.0 vmap @sm4_24',
      'ip6 daddr & ffff:ffff:: vmap @sm6_32',
    ]);
    const end = 'fib daddr type != local notrack accept';
    assert.deepEqual(
      chain(text, 's4_cb007107_32'),
      [80, 443, 8443].map((port) => `meta l4proto 6 @th,8,24 & 0xffff == ${port} ${end}`),
    );
    assert.deepEqual(chain(text, 's4_cb007100_24'), [`meta l4proto 6 @th,8,24 & 0xffff 25-26 ${end}`]);
    assert.equal(chain(text, 's6_20010db8000000000000000000000000_32')?.length, 3);
    const removed = compiler.change(
      { upsert: [], remove: [1, 2, 3].map((each) => testFilter(each, '::', dns).uuid) },
      mark,
    );
    assert.match(removed.text, /^delete map inet levee sm4_24$/m);
    assert.doesNotMatch(removed.text, /jump syns/);
  });

  it('a thousand proxies are asked by no SYN to another destination', () => {
    const many = Array.from({ length: 1000 }, (_, index) =>
      testFilter(index, `10.0.${index >> 8}.${index & 255}`, proxyKind),
    );
    const { text } = loaded(many);
    assert.equal(chain(text, 'syns')?.length, 1);
    assert.ok((chain(text, 'hook_prerouting')?.length ?? 0) < 8);
  });
});

describe('the many default ports of a kind', () => {
  it('are one look-up in a set that every table has', () => {
    const names = kindPortSets.map(({ definition }) => definition.name);
    assert.deepEqual(names, ['ports_3_udp_src']);
    assert.match(loaded([]).text, /\nset ports_3_udp_src \{\ntype inet_service\nelements = \{ 17,\n19,/);
    assert.equal(kindPortsCondition(3, 'udp', 'src'), '@th,0,24 != 0xffffff th sport @ports_3_udp_src');
    const enforced = { ...udpAmplification, enforcement: rememberingKind.enforcement };
    const { chains } = filterProgram(testFilter(1, '203.0.113.7', enforced));
    assert.equal(chains[0]?.lines.length, 1);
    assert.match(
      chains[0]?.lines[0] ?? '',
      /^meta l4proto 17 @th,0,24 != 0xffffff th sport @ports_3_udp_src goto f_udp_/,
    );
  });
});
