import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Effect, type Evaluation, entryOf, evaluate, type Verdict } from './evaluate.ts';
import type { Packet } from './packet.ts';
import { burstPackets, compareRules, type Rule, type RuleAction } from './rule.ts';

const packet: Packet = {
  family: 4,
  source: 1n,
  destination: 7n,
  upperProtocol: 17,
  extensionHeaders: [],
  packetType: 'host',
};

function rule(fields: Partial<Rule> & { readonly action: RuleAction }): Rule {
  return {
    uuid: 'a',
    sequence: 1,
    priority: 1000,
    dst: { family: 4, value: 0n, length: 0 },
    protocol: 'any',
    disabled: false,
    ...fields,
  };
}

/** Rules of few values, so that priorities tie and mismatches are common. */
const ruleList: fc.Arbitrary<Rule[]> = fc
  .array(
    fc.record({
      action: fc.constantFrom<RuleAction>('accept', 'continue', 'drop', 'reject'),
      priority: fc.integer({ min: 1, max: 3 }),
      protocol: fc.constantFrom('any' as const, 'udp' as const, 'tcp' as const),
      disabled: fc.constantFrom(false, false, false, true),
      limit: fc.constantFrom(undefined, undefined, 5),
    }),
    { maxLength: 8 },
  )
  .map((list) =>
    list.map(({ limit, ...fields }, index) =>
      rule({
        ...fields,
        uuid: `r${index}`,
        sequence: index,
        ...(limit !== undefined && { rateLimitPacketsPerSecond: limit }),
      }),
    ),
  );

for (const [action, limited, within, verdict, effect] of [
  ['accept', false, true, 'accept', 'accepted'],
  ['drop', false, true, 'drop', 'dropped'],
  ['reject', false, true, 'reject', 'rejected'],
  ['continue', false, true, undefined, 'counted'],
  ['accept', true, true, 'accept', 'accepted'],
  ['accept', true, false, 'drop', 'dropped_over_limit'],
  ['drop', true, true, undefined, 'passed_within_limit'],
  ['drop', true, false, 'drop', 'dropped_over_limit'],
  ['reject', true, true, undefined, 'passed_within_limit'],
  ['reject', true, false, 'reject', 'rejected_over_limit'],
  ['continue', true, true, undefined, 'counted'],
  ['continue', true, false, 'drop', 'dropped_over_limit'],
] as const satisfies readonly (readonly [RuleAction, boolean, boolean, Verdict | undefined, Effect])[]) {
  const limit = limited ? (within ? ' within its limit' : ' above its limit') : '';
  test(`${action}${limit}: ${effect}, ${verdict === undefined ? 'then the next rule' : 'and nothing after it'}`, () => {
    const rules = [
      rule({ action, uuid: 'asked', ...(limited && { rateLimitPacketsPerSecond: 10 }) }),
      rule({ action: 'drop', uuid: 'next', sequence: 2 }),
    ];
    const { trail, ...decided } = evaluate(rules, packet, { withinLimit: () => within });
    const [entry] = trail;
    assert.ok(entry?.matched);
    assert.equal(entry.effect, effect);
    assert.equal(trail.length, verdict === undefined ? 2 : 1);
    assert.deepEqual(
      decided,
      verdict === undefined ? { verdict: 'drop', decidedBy: 'next' } : { verdict, decidedBy: 'asked' },
    );
  });
}

test('no rule at all lets the packet through by default', () => {
  assert.deepEqual(evaluate([], packet), { verdict: 'accept', decidedBy: 'default', trail: [] });
});

test('priority goes before creation, creation decides between equals', () => {
  const order = (rules: Rule[]) => evaluate(rules, packet).trail.map((entry) => entryOf(entry).uuid);
  const rules = [
    rule({ action: 'continue', uuid: 'third', priority: 2, sequence: 9 }),
    rule({ action: 'continue', uuid: 'first', priority: 1, sequence: 10 }),
    rule({ action: 'continue', uuid: 'second', priority: 2, sequence: 8 }),
  ];
  assert.deepEqual(order(rules), ['first', 'second', 'third']);
  assert.deepEqual(order(rules.toReversed()), ['first', 'second', 'third']);
});

test('the order in which the rules are handed over changes nothing, and the list handed over stays as it was', () => {
  fc.assert(
    fc.property(ruleList, fc.infiniteStream(fc.nat()), (rules, keys) => {
      const shuffled = rules
        .map((of) => ({ of, key: keys.next().value as number }))
        .sort((a, b) => a.key - b.key)
        .map(({ of }) => of);
      const before = [...shuffled];
      assert.deepEqual(evaluate(shuffled, packet), evaluate(rules, packet));
      assert.deepEqual(shuffled, before);
    }),
  );
});

test('the trail holds every rule up to the deciding one, in order, and the deciding one last', () => {
  fc.assert(
    fc.property(ruleList, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), (rules, answers) => {
      let asked = 0;
      const { trail, decidedBy } = evaluate(rules, packet, { withinLimit: () => answers[asked++] ?? true });
      const sorted = rules.toSorted(compareRules);
      assert.deepEqual(trail.map(entryOf), sorted.slice(0, trail.length));
      if (decidedBy === 'default') assert.equal(trail.length, rules.length);
      else assert.equal(trail.map(entryOf).at(-1)?.uuid, decidedBy);
      const limited = trail.filter(
        (entry) => entry.matched && 'rule' in entry && entry.rule.rateLimitPacketsPerSecond !== undefined,
      );
      assert.equal(asked, limited.length);
    }),
    { numRuns: 1000 },
  );
});

const outcome = ({ verdict, decidedBy }: Evaluation) => ({ verdict, decidedBy });

test('rules that do not match, are disabled, or only count within their limit can be left out', () => {
  fc.assert(
    fc.property(ruleList, (rules) => {
      const matter = rules.filter((of) => !of.disabled && of.protocol !== 'tcp' && of.action !== 'continue');
      assert.deepEqual(outcome(evaluate(matter, packet)), outcome(evaluate(rules, packet)));
    }),
    { numRuns: 1000 },
  );
});

test('what comes after an unconditional verdict changes nothing', () => {
  fc.assert(
    fc.property(ruleList, ruleList, (before, after) => {
      const first = before.map((of) => ({ ...of, priority: 1 }));
      const end = rule({ action: 'drop', uuid: 'end', priority: 2 });
      const last = after.map((of) => ({ ...of, uuid: `${of.uuid}'`, priority: 3 }));
      assert.deepEqual(evaluate([...first, end, ...last], packet), evaluate([...first, end], packet));
    }),
  );
});

test('limits that nothing exceeds leave what accept and continue do, and make drop and reject pass', () => {
  fc.assert(
    fc.property(ruleList, (rules) => {
      const policed = rules.map((of): Rule => ({ ...of, rateLimitPacketsPerSecond: 5 }));
      const { verdict } = evaluate(policed, packet);
      assert.equal(verdict, 'accept');
    }),
  );
});

test('a burst is a tenth of a second’s packets, and five at least', () => {
  assert.deepEqual([1, 50, 51, 60, 1000, 4294967295].map(burstPackets), [5, 5, 6, 6, 100, 429496730]);
});
