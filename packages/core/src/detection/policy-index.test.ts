import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DetectionPolicySettings } from '@levee/contract/detector.ts';
import fc from 'fast-check';
import { prefixContains } from '../net/prefix.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { AGGREGATE_FACTOR, defaultThresholds, effectivePolicy } from './policy.ts';
import { PolicyIndex } from './policy-index.ts';
import { vectorNumber, vectors } from './vector.ts';

function policy(uuid: string, rank: number, subnets: string[], more: Partial<DetectionPolicySettings> = {}) {
  return { uuid, rank, subnets, thresholds: {}, hold_s: 30, baseline_factor: 3, ...more };
}

const syn = vectorNumber('tcp-syn');

test('without policies the defaults hold, four times as much for a subnet', () => {
  const { thresholds, aggregateThresholds } = new PolicyIndex([]).of(prefixFromTrusted('203.0.113.7'));
  for (const [number, vector] of vectors.entries()) {
    const { pps, bps } = defaultThresholds[vector];
    assert.deepEqual(thresholds[number], { policy: 'default', pps, bps });
    assert.equal(aggregateThresholds[number]?.pps, pps && pps * AGGREGATE_FACTOR);
    assert.equal(aggregateThresholds[number]?.bps, bps && bps * AGGREGATE_FACTOR);
  }
});

test('the narrowest that says something of a vector holds for it, and of hold and factor the narrowest of all', () => {
  const index = new PolicyIndex([
    policy('wide', 0, [], { thresholds: { 'tcp-syn': { pps: 500 }, icmp: { bps: 1e6 } }, hold_s: 60 }),
    policy('mine', 2, ['203.0.113.0/24'], { thresholds: { 'tcp-syn': { pps: 700 } } }),
    policy('host', 3, ['203.0.113.7'], { baseline_factor: 9, hold_s: 5 }),
  ]);
  const found = index.of(prefixFromTrusted('203.0.113.7'));
  assert.deepEqual(found.thresholds[syn], { policy: 'mine', pps: 700, bps: undefined });
  assert.deepEqual(found.thresholds[vectorNumber('icmp')], { policy: 'wide', pps: undefined, bps: 1e6 });
  assert.deepEqual([found.holdSeconds, found.baselineFactor], [5, 9]);
  assert.equal(index.of(prefixFromTrusted('198.51.100.1')).holdSeconds, 60);
});

test('the longest subnet comes first, be it its own or its account’s, of one length the higher rank, and an account without addresses has no say', () => {
  const syns = (pps: number) => ({ thresholds: { 'tcp-syn': { pps } } });
  const index = new PolicyIndex([
    policy('everything', 0, [], syns(1)),
    policy('provider', 1, ['203.0.113.0/24'], syns(2)),
    policy('around', 3, ['203.0.113.0/25'], syns(3)),
    policy('user', 2, ['203.0.113.0/28', '203.0.113.128/25', '198.51.100.0/24'], syns(4)),
    policy('same', 3, ['203.0.113.128/25'], syns(5)),
    policy('inside', 3, ['203.0.113.8/29'], syns(6)),
    policy('nobody', 2, [], syns(7)),
  ]);
  const at = (dst: string) => index.of(prefixFromTrusted(dst)).thresholds[syn]?.policy;
  assert.equal(at('203.0.113.7'), 'user');
  assert.equal(at('203.0.113.8'), 'inside');
  assert.equal(at('203.0.113.16'), 'around');
  assert.equal(at('203.0.113.200'), 'same');
  assert.equal(at('203.0.113.0/24'), 'provider');
  assert.equal(at('192.0.2.1'), 'everything');
});

test('what a narrower policy says of one address holds against what a wider one says of a subnet', () => {
  const wide = policy('wide', 0, [], { aggregate_thresholds: { 'tcp-syn': { pps: 100 } } });
  const narrow = policy('narrow', 3, ['203.0.113.0/24'], { thresholds: { 'tcp-syn': { pps: 5_000 } } });
  assert.deepEqual(effectivePolicy([narrow, wide]).aggregateThresholds[syn], {
    policy: 'narrow',
    pps: 20_000,
    bps: undefined,
  });
  assert.equal(effectivePolicy([wide]).aggregateThresholds[syn]?.pps, 100);
});

test('a policy for a part of a subnet does not hold for the whole', () => {
  const index = new PolicyIndex([policy('part', 3, ['203.0.113.7'], { thresholds: { 'tcp-syn': { pps: 1 } } })]);
  assert.equal(index.of(prefixFromTrusted('203.0.113.0/24')).thresholds[syn]?.policy, 'default');
  assert.equal(index.isUniform(prefixFromTrusted('203.0.113.0/24')), false);
  assert.equal(index.isUniform(prefixFromTrusted('203.0.114.0/24')), true);
});

test('what holds is what a walk over all policies finds', () => {
  const subnet = fc
    .tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 24, max: 32 }))
    .map(([host, length]) => (length === 32 ? `203.0.113.${host}` : `203.0.113.0/${length}`));
  const policies = fc.array(fc.record({ rank: fc.integer({ min: 1, max: 3 }), subnet, says: fc.boolean() }), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(policies, fc.integer({ min: 0, max: 255 }), (drawn, host) => {
      const all = drawn.map(({ rank, subnet, says }, number) =>
        policy(
          String(number).padStart(2, '0'),
          rank,
          [subnet],
          says ? { thresholds: { 'tcp-syn': { pps: number } } } : {},
        ),
      );
      const address = prefixFromTrusted(`203.0.113.${host}`);
      let best: (typeof all)[number] | undefined;
      for (const each of all) {
        const [text = ''] = each.subnets;
        if (!prefixContains(prefixFromTrusted(text), address) || each.thresholds['tcp-syn'] === undefined) continue;
        const length = ({ subnets: [of = ''] }: typeof each) => prefixFromTrusted(of).length;
        const isBetter =
          best === undefined || length(each) > length(best) || (length(each) === length(best) && each.rank > best.rank);
        if (isBetter) best = each;
      }
      assert.equal(new PolicyIndex(all).of(address).thresholds[syn]?.policy, best?.uuid ?? 'default');
    }),
  );
});
