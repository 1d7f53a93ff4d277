import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VectorProfile } from '@levee/contract/detector.ts';
import { defaultThresholds } from '../detection/policy.ts';
import type { Vector } from '../detection/vector.ts';
import { parseStoredRule } from '../firewall/parse.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { decideMeasures, type MitigationCase } from './decide.ts';
import type { Measures } from './measure.ts';
import { type Settled, type StandingRoute, type StandingRule, settleMeasures } from './settle.ts';
import { profileOf } from './testing/profile.ts';

const from = (...ports: [number, number][]): VectorProfile =>
  profileOf('udp-amplification', {
    source_ports: ports.map(([value, share]) => ({ value, share })),
    length: { min: 1000, p5: 1000, max: 1400 },
  });

function caseOf(profiles: readonly VectorProfile[], more: Partial<MitigationCase> = {}): MitigationCase {
  return {
    dst: prefixFromTrusted('203.0.113.7'),
    profiles,
    limitsOf: (vector) => defaultThresholds[vector as Vector],
    policy: { mitigation: 'flowspec', overrideAccept: false, allowBlackhole: false },
    accepts: [],
    routesLeft: 1000,
    ...more,
  };
}

/** As the database would have them. */
function standingOf({ flowrules, edge }: Measures): { routes: StandingRoute[]; rules: StandingRule[] } {
  return {
    routes: flowrules.map(({ purpose, canonical }, index) => ({
      uuid: `route ${index}`,
      purpose,
      canonical,
      isOwn: true,
      released: false,
      overridesAccept: false,
    })),
    rules: edge.map(({ purpose, canonical }, index) => ({ uuid: `rule ${index}`, purpose, canonical })),
  };
}

function settled(before: MitigationCase, after: MitigationCase): Settled {
  const { routes, rules } = standingOf(decideMeasures(before));
  return settleMeasures(after, decideMeasures(after), routes, rules);
}

const isSame = ({ flowrules, edge }: Settled) =>
  flowrules.make.length + flowrules.remove.length + edge.make.length + edge.remove.length === 0;

test('what was decided once stands, and measures that catch nine tenths stay though others would be decided now', () => {
  const one = caseOf([from([53, 1])]);
  assert.ok(isSame(settled(one, one)));
  assert.ok(isSame(settled(one, caseOf([from([53, 0.91], [123, 0.09])]))));
  assert.ok(isSame(settled(caseOf([from([53, 0.5], [123, 0.5])]), one)), 'wider ones stay as well');
});

test('below nine tenths a vector gets new measures, and the others keep theirs', () => {
  const gre = profileOf('gre', { pps: 10 });
  const { flowrules, edge } = settled(caseOf([from([53, 1]), gre]), caseOf([from([53, 0.5], [123, 0.5]), gre]));
  assert.deepEqual(flowrules.remove, ['route 0']);
  assert.deepEqual(
    flowrules.make.map(({ canonical }) => canonical.components['source-port']),
    ['53,123'],
  );
  assert.deepEqual(
    flowrules.keep.map(({ uuid }) => uuid),
    ['route 1'],
  );
  assert.deepEqual(
    edge.make.map(({ purpose }) => purpose),
    ['udp-amplification:port 123'],
  );
  assert.deepEqual(edge.remove, []);
});

test('a vector that is not told of at present keeps its measures', () => {
  const both = caseOf([from([53, 1]), profileOf('gre')]);
  assert.ok(isSame(settled(both, caseOf([from([53, 1])]))));
});

test('measures that look at connections go when a vector joins that would fill the table of them', () => {
  const { edge } = settled(caseOf([from([53, 1])]), caseOf([from([53, 1]), profileOf('udp-other')]));
  assert.deepEqual(edge.remove, ['rule 0']);
  assert.deepEqual(
    edge.make.map(({ purpose, canonical }) => [purpose, canonical.statetype]),
    [
      ['udp-other:rate', undefined],
      ['udp-amplification:port 53', undefined],
    ].toSorted(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1)),
  );
});

test('what discards gives way at once to a limit where the destination turns out to have a use for it, and not the other way', () => {
  const usual = (baselinePps: number) => caseOf([profileOf('gre')], { limitsOf: () => ({ pps: 50_000, baselinePps }) });
  const softened = settled(usual(0), usual(20_000));
  assert.deepEqual(
    softened.flowrules.make.map(({ canonical: { action } }) => action),
    ['rate-limit'],
  );
  assert.deepEqual(softened.flowrules.remove, ['route 0']);
  assert.deepEqual(
    softened.edge.make.map(({ canonical: { ratelimit } }) => ratelimit),
    [50_000],
  );
  assert.deepEqual(softened.edge.remove, ['rule 0']);
  assert.ok(isSame(settled(usual(20_000), usual(0))));
});

test('never more than eight stand, and none beyond the budget: then it is decided anew', () => {
  const names = ['icmp', 'esp', 'tcp-syn', 'tcp-ack', 'tcp-rst', 'tcp-syn-ack', 'tcp-other', 'udp-other'];
  const eight = names.map((vector) => profileOf(vector));
  const one = caseOf(eight);
  assert.equal(decideMeasures(one).flowrules.length, 8);
  const joined = settled(one, caseOf([...eight, profileOf('gre', { pps: 1_000_000 })]));
  assert.ok(joined.flowrules.keep.length + joined.flowrules.make.length <= 8);
  assert.ok(joined.flowrules.make.some(({ purpose }) => purpose === 'gre:all'));
  const scarce = settled(one, caseOf(eight, { routesLeft: 1 }));
  assert.equal(scarce.flowrules.keep.length + scarce.flowrules.make.length, 1);
  const none = settled(one, caseOf(eight, { routesLeft: 0 }));
  assert.ok([...none.flowrules.keep, ...none.flowrules.make].every(({ held }) => held?.by === 'budget'));
});

test('a policy that observes keeps routes to show and takes the rules; one announced by hand its policy does not hold', () => {
  const one = caseOf([from([53, 1])]);
  const observes = caseOf([from([53, 1])], { policy: { ...one.policy, mitigation: 'observe' } });
  const { flowrules, edge } = settled(one, observes);
  assert.deepEqual(
    flowrules.keep.map(({ held }) => held?.by),
    ['policy'],
  );
  assert.deepEqual(edge.remove, ['rule 0']);
  const { routes } = standingOf(decideMeasures(one));
  const released = routes.map((route) => ({ ...route, released: true }));
  const { keep } = settleMeasures(observes, decideMeasures(observes), released, []).flowrules;
  assert.deepEqual(
    keep.map(({ held }) => held),
    [undefined],
  );
});

test("another attack's wider flowrule counts, and is left alone", () => {
  const one = caseOf([profileOf('gre')]);
  const { routes } = standingOf(decideMeasures(caseOf(one.profiles, { dst: prefixFromTrusted('203.0.113.0/24') })));
  const wide = routes.map((route) => ({ ...route, isOwn: false }));
  const { flowrules } = settleMeasures(one, decideMeasures(one), wide, []);
  assert.deepEqual(flowrules, { keep: [], make: [], remove: [] });
});

test('what was made before anything was seen gives way to what is seen, and is not taken up again while that is enough', () => {
  const unseen = caseOf([{ ...from(), samples: 0, length: { min: 0, p5: 0, max: 0 } }]);
  const seen = caseOf([from([123, 1])]);
  const first = decideMeasures(unseen);
  const { flowrules, edge } = settled(unseen, seen);
  assert.deepEqual([flowrules.remove, edge.remove.length], [['route 0'], first.edge.length - 1]);
  assert.deepEqual(
    flowrules.make.map(({ canonical }) => canonical.components['source-port']),
    ['123'],
  );
  assert.ok(isSame(settled(seen, caseOf([from([123, 0.95], [53, 0.05])]))));
  const wavering = caseOf([from([123, 0.8], [53, 0.2])]);
  assert.ok(isSame(settled(wavering, seen)), 'a port more is not much wider');
});

test('what is held for a customer gives way to what touches none', () => {
  const parsed = parseStoredRule(
    { dst: '203.0.113.7', protocol: 'udp', port: { src: { start: 53 } }, action: 'accept', priority: 1 },
    { uuid: '018f0000-0000-7000-8000-000000000001', sequence: 1 },
  );
  assert.ok(parsed.ok);
  const accepts = [parsed.rule];
  const both = caseOf([from([53, 0.3], [123, 0.7])], { accepts });
  const one = caseOf([from([53, 0.02], [123, 0.98])], { accepts });
  const { flowrules } = settled(both, one);
  assert.deepEqual(flowrules.remove, ['route 0']);
  assert.deepEqual(
    flowrules.make.map(({ canonical, held }) => [canonical.components['source-port'], held]),
    [['123', undefined]],
  );
});
