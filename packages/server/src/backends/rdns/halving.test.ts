import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { applyByHalves } from './halving.ts';
import { away, type PtrChange } from './port.ts';

const changesOf = (count: number): PtrChange[] =>
  Array.from({ length: count }, (_, index) => ({ owner: `n${index}`, target: 'x.example.net' }));

const cases = fc.integer({ min: 1, max: 300 }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    refused: fc.uniqueArray(fc.nat(count - 1), { maxLength: count }),
    messages: fc.integer({ min: 12, max: 60 }),
  }),
);

test('round after round of the untried ends with exactly the refused ones refused, each round within its budget', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ count, refused, messages }) => {
      const bad = new Set(refused.map((index) => `n${index}`));
      const taken = new Set<string>();
      const found = new Map<string, string>();
      let open = changesOf(count);
      for (let rounds = 0; open.length > 0; rounds++) {
        // One may end halfway to a refused one that lies far behind.
        assert.ok(rounds <= 2 * bad.size, `${rounds} rounds for ${bad.size} refused ones`);
        let sent = 0;
        const applied = await applyByHalves(open, { left: messages }, async (changes) => {
          sent += 1;
          if (changes.some(({ owner }) => bad.has(owner))) return { ok: 'refused', reason: 'no' };
          for (const { owner } of changes) taken.add(owner);
          return { ok: true };
        });
        assert.ok(applied.ok);
        assert.ok(sent <= messages + 1, `${sent} messages of ${messages}`);
        for (const [owner, reason] of applied.refused) found.set(owner, reason);
        const tried = open.length - applied.untried.size;
        assert.ok(
          open.slice(0, tried).every(({ owner }) => !applied.untried.has(owner)),
          'what is untried is the end',
        );
        open = open.slice(tried);
      }
      assert.deepEqual(new Set(found.keys()), bad);
      assert.equal(taken.size, count - bad.size);
    }),
    { numRuns: 200 },
  );
});

test('trouble under way ends it, and says nothing of single changes', async () => {
  let sent = 0;
  const applied = await applyByHalves(changesOf(8), { left: 50 }, async () => {
    sent += 1;
    return sent < 3 ? { ok: 'refused', reason: 'no' } : away('gone');
  });
  assert.deepEqual(applied, away('gone'));
  assert.equal(sent, 3);
});
