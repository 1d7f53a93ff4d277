/** Every kind's vectors through the evaluator. What a kind must bring is held here too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from './catalogue.ts';
import { createFilterMemory } from './memory.ts';
import { createModelRouter, outcomeOf } from './testing/model-router.ts';
import { clientAddress, familiesOf, packetOf, vectorFilter } from './testing/vector-run.ts';

const destinations = { 4: 0xcb007107n, 6: (0x20010db8n << 96n) + 7n } as const;

for (const kind of filterKinds) {
  const { enforcement, name } = kind;
  for (const vector of enforcement.vectors) {
    test(`${name}: ${vector.says}`, () => {
      for (const family of familiesOf(kind, vector)) {
        const filter = vectorFilter(kind, { family, value: destinations[family] }, 1);
        const memory = createFilterMemory();
        if (vector.settling) memory.begin(filter);
        const router = createModelRouter([filter], memory);
        for (const [index, step] of vector.steps.entries()) {
          const packet = packetOf(step, filter, clientAddress(family, BigInt(step.client ?? 1)));
          const { verdict, evaluation } = router.route(packet, step.from === 'client');
          if (step.from === 'server') continue;
          const told = evaluation.trail.map((entry) => ('why' in entry ? entry.why : !entry.matched && entry.mismatch));
          assert.equal(outcomeOf(verdict), step.expect, `IPv${family}, step ${index + 1}: ${told.join()}`);
        }
      }
    });
  }
}
