import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilterKind } from '../filter/filter-kind.ts';
import { dns } from '../filter/kinds/dns.ts';
import { web } from '../filter/kinds/web.ts';
import { filterProgram } from './filter-text.ts';
import { testFilter } from './testing/test-filter.ts';
import { rememberingKind } from './testing/test-kinds.ts';

/** A chain's lines, the filter's own names without its number. */
function linesOf(dst: string, kind: FilterKind, part: string): string[] | undefined {
  const { chains } = filterProgram(testFilter(1, dst, kind));
  const found = chains.find(({ name }) => name.startsWith(`f_${part}_`));
  return found?.lines.map((line) => line.replaceAll(/(f_[a-z_]+)_[0-9a-z]+/g, '$1'));
}

function asking(lines: (above: string, discard: string) => readonly string[]): FilterKind {
  const { enforcement } = rememberingKind;
  const compile = ({ above, discard }: Parameters<typeof enforcement.compile>[0]) => ({
    udp: lines(above('sum'), discard),
  });
  return { ...rememberingKind, enforcement: { ...enforcement, compile } };
}

test('a line goes to the chain of its meter, and comes back when it is within, or within what all without a place share', () => {
  const keys = {
    '203.0.113.7': 'ip saddr . ip daddr',
    '2001:db8::7': 'ip6 saddr & ffff:ffff:ffff:ffff:: . ip6 daddr',
  };
  for (const [dst, key] of Object.entries(keys)) {
    assert.match(linesOf(dst, dns, 'udp')?.[0] ?? '', /^@ih,\S+ & \S+ == \S+ jump f_meter_source$/);
    assert.deepEqual(linesOf(dst, dns, 'meter_source'), [
      `update @f_meter_source { ${key} limit rate 1000/second burst 2000 packets } return`,
      `${key} != @f_meter_source limit rate 10000/second burst 20000 packets return`,
      'goto f_discard',
    ]);
  }
});

test('a meter of destinations in a subnet has places for them, and a bound for all others', () => {
  const kind = asking((above, discard) => [`@ih,0,8 1 ${above} ${discard}`]);
  assert.deepEqual(linesOf('2001:db8::/64', kind, 'udp'), ['@ih,0,8 1 jump f_meter_sum', 'goto f_discard']);
  assert.deepEqual(linesOf('2001:db8::/64', kind, 'meter_sum'), [
    'update @f_meter_sum { ip6 daddr limit rate 50/second burst 50 packets } return',
    'ip6 daddr != @f_meter_sum limit rate 500/second burst 500 packets return',
    'goto f_discard',
  ]);
});

test('lines that ask under conditions share the bucket of the one address, too', () => {
  const kind = asking((above, discard) => [`@ih,0,8 1 ${above} ${discard}`, `${above} ${discard}`]);
  assert.deepEqual(linesOf('203.0.113.7', kind, 'udp'), [
    '@ih,0,8 1 jump f_meter_sum',
    'jump f_meter_sum',
    'goto f_discard',
  ]);
  assert.deepEqual(linesOf('203.0.113.7', kind, 'meter_sum'), [
    'limit rate over 50/second burst 50 packets goto f_discard',
  ]);
});

test('who opens too much is refused, and discarded where nobody more can be refused', () => {
  const lines = linesOf('2001:db8::7', web, 'opening');
  assert.deepEqual(lines?.slice(2), [
    'update @f_refused { ip6 saddr & ffff:ffff:ffff:ffff:: . ip6 daddr } goto f_discard',
    'goto f_discard',
  ]);
});

test('a kind that does anything else with a packet above a meter is a fault of the kind', () => {
  const kind = asking((above, discard) => [`${above} counter ${discard}`]);
  assert.throws(() => filterProgram(testFilter(1, '203.0.113.7', kind)), /above_sum/);
});
