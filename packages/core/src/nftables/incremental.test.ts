import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Entry } from '../filter/entry.ts';
import { type Compiler, createCompiler } from './compiler.ts';
import { kernelObstacle, TestNamespace } from './testing/kernel-table.ts';
import { arbitraryFilter, arbitraryProfileFilter } from './testing/random-filters.ts';
import { arbitraryProfileRule, arbitraryRule, ruleUuid } from './testing/random-rules.ts';
import { testRule } from './testing/test-rule.ts';

const mark = '00000000000000ff';
/** A failure is shrunk for this long at most. */
const bounded = { interruptAfterTimeLimit: 90_000 };
const options = { ingressDevices: ['lo'] };

interface Step {
  readonly upsert: readonly Entry[];
  readonly remove: readonly string[];
  /** Planned and thrown away, as a transaction that the kernel refused. */
  readonly refused: boolean;
}

function arbitrarySteps(entry: fc.Arbitrary<Entry>, numbers: number, most: number): fc.Arbitrary<Step[]> {
  return fc.array(
    fc.record({
      upsert: fc.array(entry, { maxLength: most }),
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

  function sameAsFresh(compiler: Compiler, entries: ReadonlyMap<string, Entry>): void {
    const anew = createCompiler(options);
    const plan = anew.replace(entries.values(), mark);
    fresh.load(plan.text);
    plan.commit();
    const [have, want] = [changed.content(), fresh.content()];
    assert.deepEqual(have, want);
    assert.equal(compiler.entryCount, entries.size);
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

  function holds(first: readonly Entry[], steps: readonly Step[]): void {
    const compiler = createCompiler(options);
    const entries = new Map(first.map((entry) => [entry.uuid, entry]));
    const start = compiler.replace(entries.values(), mark);
    changed.load(start.text);
    start.commit();
    for (const { upsert, remove, refused } of steps) {
      const plan = compiler.change({ upsert, remove }, mark);
      if (refused) continue;
      changed.load(plan.text);
      plan.commit();
      for (const uuid of remove) entries.delete(uuid);
      for (const entry of upsert) entries.set(entry.uuid, entry);
    }
    sameAsFresh(compiler, entries);
  }

  it('any sequence of changes leaves the kernel with what loading the result anew gives, every field and kind', () => {
    const numbers = 60;
    const entry = fc.oneof(
      { weight: 3, arbitrary: arbitraryRule(numbers) },
      { weight: 1, arbitrary: arbitraryFilter(numbers) },
    );
    const first = fc.array(entry, { maxLength: 60 });
    fc.assert(fc.property(first, arbitrarySteps(entry, numbers, 12), holds), { numRuns: 30, ...bounded });
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
    const entry = fc.oneof(
      { weight: 9, arbitrary: arbitraryProfileRule(numbers) },
      { weight: 1, arbitrary: arbitraryProfileFilter(numbers) },
    );
    const first = fc.array(entry, { minLength: 60, maxLength: 250 });
    fc.assert(fc.property(first, arbitrarySteps(entry, 2 * numbers, 60), holds), { numRuns: 16, ...bounded });
  });
});
