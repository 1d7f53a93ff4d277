import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rule } from '../firewall/rule.ts';
import { createCompiler } from './compiler.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '0123456789abcdef';

/** A compiler that holds these rules, and the text that loaded them. */
function loaded(rules: readonly Rule[], options = {}) {
  const compiler = createCompiler(options);
  const plan = compiler.replace(rules, mark);
  plan.commit();
  return { compiler, text: plan.text };
}

/** The lines of one chain of a whole table's text. */
function chain(text: string, name: string): string[] | undefined {
  const block = text.split(`\nchain ${name} {\n`)[1];
  return block?.slice(0, block.indexOf('}')).split('\n').filter(Boolean);
}

/** Port and verdict of each line of rules that differ in their port alone. */
function ports(lines: readonly string[] | undefined): string | undefined {
  return lines?.map((line) => line.replace(/.*== (\d+) counter.*/, '$1')).join(' ');
}

function udp(number: number, dst: string, port: number, fields: Partial<Rule> = {}): Rule {
  return testRule(number, dst, { protocol: 'udp', destinationPorts: { start: port, end: port }, ...fields });
}

describe('chains', () => {
  it('a destination has its own rules and those of every covering prefix, by priority, then creation', () => {
    const { text } = loaded([
      udp(4, '203.0.113.7', 4, { priority: 20 }),
      udp(3, '203.0.113.0/24', 3, { priority: 20 }),
      udp(5, '0.0.0.0/0', 5, { priority: 20 }),
      udp(1, '203.0.113.7', 1, { priority: 30 }),
      udp(2, '203.0.0.0/16', 2, { priority: 10 }),
      udp(6, '203.0.114.0/24', 6),
    ]);
    assert.equal(ports(chain(text, 'c4_cb007107_32')), '2 3 4 5 1');
    assert.equal(ports(chain(text, 'c4_cb007100_24')), '2 3 5');
    assert.equal(ports(chain(text, 'c4_cb000000_16')), '2 5');
    assert.equal(ports(chain(text, 'c4_cb007200_24')), '2 5 6');
    assert.equal(ports(chain(text, 'c4_00000000_0')), '5');
  });

  it('prefix lengths are probed longest first, IPv4’s at the hook itself', () => {
    const six = [udp(4, '2001:db8::/32', 4), udp(5, '2001:db8::1', 5)];
    const four = [udp(1, '0.0.0.0/0', 1), udp(2, '203.0.113.7', 2), udp(3, '203.0.113.0/25', 3)];
    const { text } = loaded([...six, ...four]);
    assert.deepEqual(chain(text, 'cd6'), ['ip6 daddr vmap @cm6_128', 'ip6 daddr & ffff:ffff:: vmap @cm6_32']);
    assert.deepEqual(chain(text, 'hook_forward')?.slice(1), [
      'meta nfproto 10 goto cd6',
      'ip daddr vmap @cm4_32',
      'ip daddr & 255.255.255.128 vmap @cm4_25',
      'ip daddr & 0.0.0.0 vmap @cm4_0',
    ]);
  });

  it('nothing stands behind the first verdict without condition', () => {
    const { text } = loaded([
      testRule(1, '203.0.113.0/24', { action: 'accept', priority: 5 }),
      udp(2, '203.0.113.0/24', 2, { priority: 9 }),
      udp(3, '203.0.113.7', 3, { priority: 1 }),
      udp(4, '203.0.113.7', 4, { priority: 8 }),
    ]);
    assert.deepEqual(chain(text, 'c4_cb007100_24'), ['counter accept']);
    assert.deepEqual(chain(text, 'c4_cb007107_32')?.at(-1), 'counter accept');
    assert.equal(chain(text, 'c4_cb007107_32')?.length, 2);
  });

  it('a prefix whose rules can match nothing sends its packets where the covering one sends them', () => {
    const { text } = loaded([
      udp(1, '203.0.113.0/24', 1),
      udp(2, '203.0.113.7', 2, { disabled: true }),
      udp(3, '203.0.113.8', 3, { packetType: 'multicast' }),
    ]);
    assert.doesNotMatch(text, /cm4_32|c4_cb007107|c4_cb007108/);
  });

  it('5 000 destinations do not multiply the 100 rules of the prefix around them', () => {
    const wide = Array.from({ length: 100 }, (_, index) => udp(index, '10.0.0.0/16', index, { priority: index * 10 }));
    const narrow = Array.from({ length: 5000 }, (_, index) =>
      udp(1000 + index, `10.0.${index >> 8}.${index & 255}`, index, { priority: (index * 7) % 1000 }),
    );
    const { text } = loaded([...wide, ...narrow]);
    const rules = text.match(/^.*(counter|jump) .*$/gm)?.length ?? 0;
    // Copies would be 5 000 × 101 = 505 000. A destination's chain: the run up to its rule, its rule, the run behind.
    assert.ok(rules < 5000 * 4, `${rules} rules`);
  });

  it('a change of the wide prefix leaves alone the destinations whose rules stand outside the run', () => {
    const wide = Array.from({ length: 100 }, (_, index) => udp(index, '10.0.0.0/16', index));
    const narrow = Array.from({ length: 500 }, (_, index) =>
      udp(1000 + index, `10.0.${index >> 8}.${index & 255}`, index, { priority: 1 }),
    );
    const { compiler } = loaded([...wide, ...narrow]);
    const { text, flushedChains } = compiler.change({ upsert: [udp(50, '10.0.0.0/16', 9999)], remove: [] }, mark);
    assert.equal(flushedChains.length, 1);
    assert.ok(text.split('\n').length < 60, text);
  });
});

describe('sharing', () => {
  const profile = (count: number) =>
    Array.from({ length: count }, (_, index) => udp(index, `203.0.113.${index}`, 53, { action: 'accept' }));

  it('15 equal destinations have a chain each, 16 have one together', () => {
    assert.equal(loaded(profile(15)).text.match(/\nchain c4_/g)?.length, 15);
    const { text, compiler } = loaded(profile(16));
    assert.equal(text.match(/\nchain c4_/g), null);
    const [, shared = ''] = /\nchain (cs_[0-9a-f]{32}) /.exec(text) ?? [];
    assert.deepEqual(
      compiler.counterOwners(shared).map((uuids) => uuids.toSorted()),
      [profile(16).map((rule) => rule.uuid)],
    );
  });

  it('a destination that leaves below the threshold gives all of them their own chain, and back', () => {
    const rules = profile(16);
    const { compiler } = loaded(rules);
    const leave = compiler.change({ upsert: [], remove: [rules[3]?.uuid ?? ''] }, mark);
    assert.equal(leave.text.match(/^add chain inet levee c4_\w+$/gm)?.length, 15);
    assert.match(leave.text, /^delete chain inet levee cs_/m);
    assert.equal(leave.flushedChains.length, 1);
    leave.commit();
    const back = compiler.change({ upsert: rules.slice(3, 4), remove: [] }, mark);
    assert.equal(back.text.match(/^delete chain /gm)?.length, 15);
    assert.match(back.text, /^add chain inet levee cs_/m);
  });

  it('limits of different rules never share a bucket, copies of one rule always do', () => {
    const limited = (number: number, dst: string) => udp(number, dst, 53, { rateLimitPacketsPerSecond: 100 });
    const many = loaded(Array.from({ length: 20 }, (_, index) => limited(index, `203.0.113.${index}`))).text;
    assert.equal(many.match(/\nchain limit_/g)?.length, 20);
    assert.equal(many.match(/\nchain cs_/g), null);
    const copies = loaded([limited(1, '203.0.113.0/24'), udp(2, '203.0.113.7', 2), udp(3, '203.0.113.8', 3)]).text;
    assert.equal(copies.match(/\nchain limit_/g)?.length, 1);
    assert.equal(copies.match(/jump limit_/g)?.length, 3);
  });
});

describe('packet types', () => {
  const rules = [
    udp(1, '203.0.113.0/24', 1, { priority: 1 }),
    testRule(2, '203.0.113.7', { packetType: 'broadcast', priority: 2, action: 'reject' }),
    testRule(3, '203.0.113.7', { connectionState: 'new', priority: 3 }),
    testRule(4, '203.0.113.7', { packetType: 'host', priority: 4 }),
    udp(5, '203.0.114.7', 5),
  ];

  it('other hardware’s packets meet every rule that can match them at ingress, and no answer', () => {
    const { text } = loaded(rules, { ingressDevices: ['eth0', 'bond0.12'] });
    assert.match(text, /hook ingress devices = \{ "eth0", "bond0.12" \} /);
    assert.deepEqual(chain(text, 'i4_cb007107_32'), [
      'meta l4proto 17 @th,8,24 & 0xffff == 1 counter drop',
      'meta pkttype 1 counter drop',
    ]);
    assert.equal(chain(text, 'i4_cb007207_32'), undefined);
    assert.deepEqual(chain(text, 'c4_cb007107_32')?.slice(1), [
      'ct state 72 counter drop',
      'meta pkttype 0 counter drop',
    ]);
  });

  it('without such a rule, or without a device, there is nothing at ingress', () => {
    assert.doesNotMatch(loaded(rules).text, /ingress|\nchain i/);
    const plain = loaded(rules.slice(2), { ingressDevices: ['eth0'] }).text;
    assert.doesNotMatch(plain, /\nchain i4|\nmap i/);
  });

  it('the first such rule brings the wide prefixes’ rules to ingress, the last one takes them away', () => {
    const options = { ingressDevices: ['eth0'] };
    const wide = Array.from({ length: 9 }, (_, index) => udp(index, '203.0.0.0/16', index));
    wide.push(udp(10, '203.0.113.7', 10));
    const broadcast = testRule(20, '203.0.113.7', { packetType: 'broadcast' });
    const want = loaded([...wide, broadcast], options).text;
    const { compiler } = loaded(wide, options);
    const first = compiler.change({ upsert: [broadcast], remove: [] }, mark);
    for (const name of ['i4_cb007107_32', 'i4_cb000000_16']) {
      const [, added = ''] = new RegExp(`^add chain inet levee ${name} \\{\n([^}]+)\n\\}$`, 'm').exec(first.text) ?? [];
      assert.deepEqual(added.split('\n'), chain(want, name));
    }
    first.commit();
    const last = compiler.change({ upsert: [], remove: [broadcast.uuid] }, mark);
    assert.match(last.text, /^delete chain inet levee i4_cb000000_16$/m);
  });

  it('a device’s name that could end its quotes is refused', () => {
    for (const name of ['a"b', 'a b', '', 'sixteen-letters-', '-a']) {
      assert.throws(() => createCompiler({ ingressDevices: [name] }).replace([], mark), /ingress device/, name);
    }
  });
});

describe('plans', () => {
  const first = [udp(1, '203.0.113.7', 1), udp(2, '203.0.113.0/24', 2)];
  const more = [udp(3, '203.0.113.7', 3), testRule(4, '::1', { protocol: 'ipv6-frag' })];

  it('one that is not committed leaves no trace, whatever it would have changed', () => {
    const { compiler } = loaded(first);
    const want = compiler.change({ upsert: [udp(9, '203.0.113.9', 9)], remove: [] }, mark).text;
    compiler.change({ upsert: more, remove: first.map((rule) => rule.uuid) }, mark);
    compiler.replace(more, mark);
    assert.equal(compiler.entryCount, 2);
    assert.deepEqual(compiler.counterOwners('c4_cb007107_32'), [[first[0]?.uuid], [first[1]?.uuid]]);
    assert.equal(compiler.change({ upsert: [udp(9, '203.0.113.9', 9)], remove: [] }, mark).text, want);
  });

  it('one made before another was committed cannot be', () => {
    const { compiler } = loaded(first);
    const late = compiler.change({ upsert: more, remove: [] }, mark);
    compiler.change({ upsert: [], remove: [first[0]?.uuid ?? ''] }, mark).commit();
    assert.throws(() => late.commit(), /another plan/);
  });

  it('a change that the kernel would not notice has no text', () => {
    const { compiler } = loaded(first);
    assert.equal(compiler.change({ upsert: first, remove: [] }, mark).text, '');
    const disabled = compiler.change(
      { upsert: [udp(5, '203.0.113.7', 5, { disabled: true })], remove: ['absent'] },
      mark,
    );
    assert.equal(disabled.text, '');
    disabled.commit();
    assert.equal(compiler.entryCount, 3);
  });

  it('the mark is replaced in the same transaction, digit for digit', () => {
    const { compiler, text } = loaded(first);
    assert.match(text, /add chain inet levee mark_6 \{\n@nh,0,8 0 comment "0123456789abcdef"\n\}/);
    const change = compiler.change({ upsert: more, remove: [] }, 'ffffffff00000001').text;
    assert.match(
      change,
      /flush chain inet levee mark_6\nadd chain inet levee mark_6 \{\n@nh,0,8 0 comment "ffffffff00000001"\n\}/,
    );
    assert.throws(() => compiler.change({ upsert: [udp(9, '::1', 9)], remove: [] }, '} flush ruleset'), /mark/);
  });

  it('chains that lose their counters are named, new ones and those of others are not', () => {
    const { compiler } = loaded(first);
    const { flushedChains } = compiler.change(
      { upsert: [udp(3, '203.0.113.7', 3), udp(4, '203.0.113.8', 4)], remove: [] },
      mark,
    );
    assert.deepEqual(flushedChains, ['c4_cb007107_32']);
    assert.deepEqual(compiler.replace([], mark).flushedChains.toSorted(), ['c4_cb007100_24', 'c4_cb007107_32']);
  });

  it('every map by which packets find chains is named, and counts; a removed length takes its map away', () => {
    const { compiler, text } = loaded([...first, udp(9, '2001:db8::/32', 9)]);
    assert.deepEqual(compiler.destinationMaps().toSorted(), ['cm4_24', 'cm4_32', 'cm6_32']);
    for (const map of compiler.destinationMaps()) assert.match(text, new RegExp(`map ${map} \\{\ntype .*\ncounter\n`));
    const plan = compiler.change({ upsert: [udp(8, '203.0.0.0/16', 8)], remove: [first[1]?.uuid ?? ''] }, mark);
    assert.match(plan.text, /^add map inet levee cm4_16 \{ type ipv4_addr : verdict; counter; \}$/m);
    plan.commit();
    assert.deepEqual(compiler.destinationMaps().toSorted(), ['cm4_16', 'cm4_32', 'cm6_32']);
  });

  it('a rule in place of another with the same text starts from zero', () => {
    const { compiler } = loaded(first);
    const twin = { ...first[0], uuid: udp(77, '::1', 1).uuid } as Rule;
    const { flushedChains } = compiler.change({ upsert: [twin], remove: [first[0]?.uuid ?? ''] }, mark);
    assert.deepEqual(flushedChains, ['c4_cb007107_32']);
  });

  it('a change before anything was loaded is the whole table', () => {
    const compiler = createCompiler();
    const plan = compiler.change({ upsert: first, remove: [] }, mark);
    assert.match(plan.text, /^add table inet levee\ndelete table inet levee\ntable inet levee \{/);
    plan.commit();
    assert.match(compiler.change({ upsert: more, remove: [] }, mark).text, /^add chain/m);
  });

  it('nothing of a user’s text reaches nft: a uuid becomes digits', () => {
    const hostile = { ...udp(1, '203.0.113.7', 1, { rateLimitPacketsPerSecond: 5 }), uuid: 'x } ; flush ruleset #' };
    const { text } = loaded([hostile]);
    assert.doesNotMatch(text, /ruleset/);
    assert.match(text, /^chain limit_x[0-9a-f]+ \{$/m);
  });
});
