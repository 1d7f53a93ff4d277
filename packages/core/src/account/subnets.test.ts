import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { prefixesOverlap, prefixOf } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { parseSubnets } from './subnets.ts';

const bounds = { minimum: 1, maximum: 1000 };
const parse = (value: unknown) => parseSubnets(value, ['ips'], bounds);

test('a list is read in its order', () => {
  const parsed = parse(['203.0.113.0/24', '2001:DB8::/48', '198.51.100.1/32']);
  assert.ok(parsed.ok);
  assert.deepEqual(parsed.subnets.map(formatPrefix), ['203.0.113.0/24', '2001:db8::/48', '198.51.100.1']);
});

for (const [value, expected] of [
  ['203.0.113.0/24', [['/ips', 'wrong_type']]],
  [{ length: 1, 0: '203.0.113.0/24' }, [['/ips', 'wrong_type']]],
  [[], [['/ips', 'out_of_range']]],
  [Array(1001).fill('203.0.113.7'), [['/ips', 'out_of_range']]],
  [
    ['203.0.113.7/24', 7, '203.0.113.0/24'],
    [
      ['/ips/0', 'host_bits_set'],
      ['/ips/1', 'wrong_type'],
    ],
  ],
  [['203.0.113.7', '203.0.113.7/32'], [['/ips/1', 'duplicate']]],
  [['203.0.113.0/24', '203.0.113.7'], [['/ips/1', 'overlap']]],
  [['203.0.113.7', '203.0.113.0/24'], [['/ips/1', 'overlap']]],
  [['::/0', '0.0.0.0/0', '10.0.0.0/8'], [['/ips/2', 'overlap']]],
] as const) {
  test(`${JSON.stringify(value).slice(0, 60)} is refused with ${JSON.stringify(expected)}`, () => {
    const parsed = parse(value);
    assert.ok(!parsed.ok);
    assert.deepEqual(
      parsed.problems.map((problem) => [problem.field, problem.code]),
      expected,
    );
  });
}

const subnet = fc
  .tuple(fc.bigInt(0n, 63n), fc.integer({ min: 24, max: 32 }))
  .map(([value, length]) => prefixOf({ family: 4, value: 0x0a000000n | value }, length));

test('a list is accepted exactly when no two of its subnets overlap', () => {
  fc.assert(
    fc.property(fc.array(subnet, { minLength: 1, maxLength: 6 }), (subnets) => {
      const overlapping = subnets.some((a, index) => subnets.slice(index + 1).some((b) => prefixesOverlap(a, b)));
      assert.equal(parse(subnets.map(formatPrefix)).ok, !overlapping);
    }),
    { numRuns: 1000 },
  );
});
