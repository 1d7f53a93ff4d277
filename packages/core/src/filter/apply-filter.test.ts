import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluate, type Verdict } from '../firewall/evaluate.ts';
import type { Rule } from '../firewall/rule.ts';
import { applyFilter, type FilterEffect, type FilterFacts, nothingRemembered } from './apply-filter.ts';
import type { FilterFinding, FilterView } from './judgement.ts';
import { testFilter, testKind, testPacket } from './testing/test-kind.ts';

const meters = (['first', 'second'] as const).map((name) => ({
  name,
  of: 'source' as const,
  packetsPerSecond: 10,
  burst: 10,
}));
const finding = (found: FilterFinding) =>
  testKind({ meters, judge: () => found, remembers: { seconds: 9, sources: 9 } });
const passing = (more: object) => finding({ outcome: 'pass', why: 'it is good', ...more });

/** Answers as told, and notes what it was asked, in order. */
function asking(answers: Partial<Record<string, boolean>>): { readonly asked: string[]; readonly facts: FilterFacts } {
  const asked: string[] = [];
  const answer = (question: string): boolean => {
    asked.push(question);
    return answers[question] ?? true;
  };
  return {
    asked,
    facts: {
      ...nothingRemembered,
      withinMeter: (_, { name }) => answer(name),
      remember: () => void answer('remember'),
      withinRate: () => answer('rate'),
    },
  };
}

/** [what, finding, answers, effect, what was asked, verdict] */
const cases: readonly (readonly [string, FilterFinding, Record<string, boolean>, FilterEffect, string, Verdict])[] = [
  ['a discard', { outcome: 'discard', why: 'w' }, {}, 'discarded', '', 'drop'],
  ['a challenge', { outcome: 'challenge', why: 'w' }, {}, 'challenged', '', 'challenge'],
  ['what nobody told', { outcome: 'unknown', why: 'w' }, {}, 'undecided', '', 'accept'],
  ['a pass', { outcome: 'pass', why: 'w' }, {}, 'passed', 'rate', 'accept'],
  [
    'a pass within both meters',
    { outcome: 'pass', why: 'w', charges: ['first', 'second'], remembers: true },
    {},
    'passed',
    'first second remember rate',
    'accept',
  ],
  [
    'a pass above the first meter, which the second does not count',
    { outcome: 'pass', why: 'w', charges: ['first', 'second'], remembers: true },
    { first: false },
    'discarded_over_meter',
    'first',
    'drop',
  ],
  [
    'a pass above the second meter',
    { outcome: 'pass', why: 'w', charges: ['first', 'second'], remembers: true },
    { second: false },
    'discarded_over_meter',
    'first second',
    'drop',
  ],
  [
    'a pass above the limit, remembered nevertheless',
    { outcome: 'pass', why: 'w', remembers: true },
    { rate: false },
    'discarded_over_limit',
    'remember rate',
    'drop',
  ],
];

for (const [what, found, answers, effect, questions, verdict] of cases) {
  test(`${what}: ${effect}`, () => {
    const filter = testFilter(finding(found), { rateLimitMegabitsPerSecond: 1 });
    const { asked, facts } = asking(answers);
    const step = applyFilter(filter, testPacket(), facts);
    assert.ok(step.matched);
    assert.deepEqual([step.effect, step.why, asked.join(' ')], [effect, 'w', questions]);
    const evaluation = evaluate([filter], testPacket(), { filters: asking(answers).facts });
    const decidedBy = verdict === 'accept' ? 'default' : filter.uuid;
    assert.deepEqual([evaluation.verdict, evaluation.decidedBy], [verdict, decidedBy]);
  });
}

test('a filter without a limit of its own never asks for one', () => {
  const { asked, facts } = asking({});
  applyFilter(testFilter(passing({})), testPacket(), facts);
  assert.deepEqual(asked, []);
});

test('a kind is told the flow, the source and whether the filter settles', () => {
  const views: FilterView[] = [];
  const kind = testKind({
    judge(view) {
      views.push(view);
      return { outcome: 'pass', why: 'seen' };
    },
  });
  const facts = { ...nothingRemembered, knows: () => true, settling: () => true };
  applyFilter(testFilter(kind), testPacket({ connectionState: 'established' }), facts);
  applyFilter(testFilter(kind), testPacket({ connectionState: 'related' }), nothingRemembered);
  assert.deepEqual(
    views.map(({ established, known, settling, transport }) => [established, known, settling, transport]),
    [
      [true, true, true, 'udp'],
      [false, false, false, 'udp'],
    ],
  );
});

test('a kind that charges a meter it does not have is a fault, not a pass', () => {
  const filter = testFilter(passing({ charges: ['third'] }));
  assert.throws(() => applyFilter(filter, testPacket(), nothingRemembered), /no meter third/);
});

const rule = (fields: Partial<Rule> & Pick<Rule, 'uuid' | 'action'>): Rule => ({
  sequence: 100,
  priority: 2_000_000_000,
  dst: { family: 4, value: 0n, length: 0 },
  protocol: 'any',
  disabled: false,
  ...fields,
});

test('filters come behind every rule, by priority, then creation, and the first that stops a packet ends it', () => {
  const kept = passing({});
  const stop = finding({ outcome: 'discard', why: 'bad' });
  const entries = [
    testFilter(stop, { uuid: 'third', priority: 2, sequence: 1 }),
    testFilter(kept, { uuid: 'second', priority: 1, sequence: 9 }),
    testFilter(kept, { uuid: 'first', priority: 1, sequence: 8 }),
    testFilter(stop, { uuid: 'never', priority: 3, sequence: 2 }),
    rule({ uuid: 'rule', action: 'continue' }),
  ];
  for (const given of [entries, entries.toReversed()]) {
    const { verdict, decidedBy, trail } = evaluate(given, testPacket());
    const order = trail.map((step) => ('rule' in step ? step.rule : step.filter).uuid);
    assert.deepEqual([verdict, decidedBy, order], ['drop', 'third', ['rule', 'first', 'second', 'third']]);
  }
});

test('a rule that accepts keeps the packet from every filter', () => {
  const entries = [testFilter(finding({ outcome: 'discard', why: 'bad' })), rule({ uuid: 'rule', action: 'accept' })];
  const { verdict, decidedBy, trail } = evaluate(entries, testPacket());
  assert.deepEqual([verdict, decidedBy, trail.length], ['accept', 'rule', 1]);
});
