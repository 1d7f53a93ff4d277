import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { KernelPath } from './kernel-path.ts';
import { chosenSeed, holdKernelToMeaning } from './meaning-run.ts';

const wanted = Number(process.env.LEVEE_PACKETS ?? 200_000);

test(`what the kernel does to ${wanted} packets is what rules and filters mean`, {
  skip: labObstacle() ?? false,
}, async (t) => {
  const seed = chosenSeed();
  t.diagnostic(`seed ${seed} (LEVEE_SEED=${seed} repeats this run)`);
  const kernel = new KernelPath('meaning');
  try {
    const { reports, ...figures } = await holdKernelToMeaning(kernel, seed, wanted);
    t.diagnostic(JSON.stringify(figures));
    assert.equal(figures.differences, 0, `LEVEE_SEED=${seed}\n${reports.join('\n\n')}`);
    assert.ok(figures.packets >= wanted);
  } finally {
    kernel.remove();
  }
});
