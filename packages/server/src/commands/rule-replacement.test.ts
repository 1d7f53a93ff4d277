import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decideReplacement } from './rule-replacement.ts';

const rules = fc.array(
  fc.record({ priority: fc.integer({ min: 1, max: 3 }), identity: fc.constantFrom('a', 'b', 'c') }),
  {
    maxLength: 12,
  },
);

test('what stands afterwards is evaluated exactly as wanted, with nothing lost or left over', () => {
  fc.assert(
    fc.property(rules, rules, (before, wanted) => {
      const stored = before.map((rule, index) => ({ ...rule, uuid: `s${index}` }));
      const { kept, removed } = decideReplacement(stored, wanted);
      const left = stored.filter((rule) => !removed.includes(rule.uuid));
      const created = wanted.filter((_, index) => kept[index] === undefined);
      // Evaluation order: priority, then age; new rules are the youngest, in the order given.
      const after = [...left, ...created].toSorted((a, b) => a.priority - b.priority);
      const shown = (each: { priority: number; identity: string }) => `${each.priority} ${each.identity}`;
      const asked = wanted.toSorted((a, b) => a.priority - b.priority);
      assert.deepEqual(after.map(shown), asked.map(shown));
    }),
    { numRuns: 2000 },
  );
});

test('the same set again keeps everything', () => {
  fc.assert(
    fc.property(rules, (before) => {
      const stored = before.map((rule, index) => ({ ...rule, uuid: `s${index}` }));
      const { kept, removed } = decideReplacement(stored, before);
      assert.deepEqual([kept, removed], [stored.map((rule) => rule.uuid), []]);
    }),
  );
});
