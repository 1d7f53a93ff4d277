/** Every kind's vectors through the evaluator. What a kind must bring is held here too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from './catalogue.ts';
import { createModelRouter, familiesOf, packetOf, vectorFilter } from './testing/vector-run.ts';

const destinations = { 4: 0xcb007107n, 6: (0x20010db8n << 96n) + 7n } as const;
const clients = { 4: 0xc6336400n, 6: 0x20010db9n << 96n } as const;

for (const kind of filterKinds) {
  const { enforcement, name } = kind;
  if (enforcement === undefined) continue;
  for (const vector of enforcement.vectors) {
    test(`${name}: ${vector.says}`, () => {
      for (const family of familiesOf(kind, vector)) {
        const filter = vectorFilter(kind, { family, value: destinations[family] }, 1);
        const router = createModelRouter(filter, vector.settling);
        for (const [index, step] of vector.steps.entries()) {
          const { outcome, evaluation } = router.play(
            packetOf(step, filter, clients[family] + BigInt(step.client ?? 1)),
          );
          const what = `IPv${family}, step ${index + 1}: ${JSON.stringify(evaluation?.trail.map(({ matched, ...rest }) => [matched, 'why' in rest ? rest.why : 'mismatch' in rest ? rest.mismatch : '']))}`;
          if (step.from === 'client') assert.equal(outcome, step.expect, what);
        }
      }
    });
  }
}
