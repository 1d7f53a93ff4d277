import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Rule } from '../firewall/rule.ts';
import { type Compiler, createCompiler } from './compiler.ts';
import { kernelObstacle, TestNamespace } from './testing/kernel-table.ts';
import { arbitraryProfileRule, arbitraryRule, ruleUuid } from './testing/random-rules.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '00000000000000ff';
/** A failure is shrunk for this long at most. */
const bounded = { interruptAfterTimeLimit: 90_000 };
const options = { ingressDevices: ['lo'] };

interface Step {
  readonly upsert: readonly Rule[];
  readonly remove: readonly string[];
  /** Planned and thrown away, as a transaction that the kernel refused. */
  readonly refused: boolean;
}

function arbitrarySteps(rule: fc.Arbitrary<Rule>, numbers: number, most: number): fc.Arbitrary<Step[]> {
  return fc.array(
    fc.record({
      upsert: fc.array(rule, { maxLength: most }),
      remove: fc.array(fc.nat(numbers - 1).map(ruleUuid), { maxLength: most }),
      refused: fc.nat(6).map((value) => value === 0),
    }),
    { minLength: 1, maxLength: 8 },
  );
}

describe('incremental compilation', { skip: kernelObstacle() ?? false }, () => {
  let changed: TestNamespace;
  let fresh: TestNamespace;

  before(() => {
    changed = new TestNamespace();
    fresh = new TestNamespace();
  });
  after(() => {
    changed[Symbol.dispose]();
    fresh[Symbol.dispose]();
  });

  function sameAsFresh(compiler: Compiler, rules: ReadonlyMap<string, Rule>): void {
    const anew = createCompiler(options);
    const plan = anew.replace(rules.values(), mark);
    fresh.load(plan.text);
    plan.commit();
    const [have, want] = [changed.content(), fresh.content()];
    assert.deepEqual(have, want);
    assert.equal(compiler.entryCount, rules.size);
    for (const [chain, lines] of want.chains) {
      const owners = compiler.counterOwners(chain).map((uuids) => uuids.toSorted());
      assert.deepEqual(
        owners,
        anew.counterOwners(chain).map((uuids) => uuids.toSorted()),
        chain,
      );
      assert.equal(owners.length, lines.filter((line) => /\bcounter\b/.test(line)).length, chain);
    }
  }

  function holds(first: readonly Rule[], steps: readonly Step[]): void {
    const compiler = createCompiler(options);
    const rules = new Map(first.map((rule) => [rule.uuid, rule]));
    const start = compiler.replace(rules.values(), mark);
    changed.load(start.text);
    start.commit();
    for (const { upsert, remove, refused } of steps) {
      const plan = compiler.change({ upsert, remove }, mark);
      if (refused) continue;
      changed.load(plan.text);
      plan.commit();
      for (const uuid of remove) rules.delete(uuid);
      for (const rule of upsert) rules.set(rule.uuid, rule);
    }
    sameAsFresh(compiler, rules);
  }

  it('any sequence of changes leaves the kernel with what loading the result anew gives, every field', () => {
    const numbers = 60;
    const rule = arbitraryRule(numbers);
    const first = fc.array(rule, { maxLength: 60 });
    fc.assert(fc.property(first, arbitrarySteps(rule, numbers, 12), holds), { numRuns: 40, ...bounded });
  });

  it('the deepest nesting of runs and of a rule’s own chains fits the kernel’s jump stack', () => {
    const deep = { protocol: 'ipv6-frag', action: 'reject', rateLimitPacketsPerSecond: 10 } as const;
    const wide = Array.from({ length: 12_000 }, (_, index) =>
      testRule(index, '2001:db8::/48', {
        ...(index % 1000 === 0 ? deep : { protocol: 'udp', action: 'continue' }),
        priority: 1 + index * 2,
      }),
    );
    const amid = testRule(7000, '2001:db8::1', { protocol: 'udp', priority: 12_002 });
    const compiler = createCompiler(options);
    const { text } = compiler.replace([...wide, amid], mark);
    assert.match(text, /^chain cr6_\w+_48_4_/m);
    fresh.load(text);
  });

  it('so does any that makes destinations share chains, part again, and split the runs of a wide prefix', () => {
    const numbers = 400;
    const rule = arbitraryProfileRule(numbers);
    const first = fc.array(rule, { minLength: 60, maxLength: 250 });
    fc.assert(fc.property(first, arbitrarySteps(rule, numbers, 60), holds), { numRuns: 25, ...bounded });
  });
});
