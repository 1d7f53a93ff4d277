import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { KernelPath } from './kernel-path.ts';
import { chosenSeed, holdKernelToMeaning } from './meaning-run.ts';

test('what the kernel does to 30 000 packets is what rules and filters mean', {
  skip: labObstacle() ?? false,
}, async (t) => {
  const seed = chosenSeed();
  t.diagnostic(`seed ${seed} (LEVEE_SEED=${seed} repeats this run)`);
  const kernel = new KernelPath('meaning');
  try {
    const run = await holdKernelToMeaning(kernel, seed, 30000);
    const { reports, ...figures } = run;
    t.diagnostic(JSON.stringify(figures));
    assert.equal(run.differences, 0, `LEVEE_SEED=${seed}\n${reports.join('\n\n')}`);
    assert.ok(run.packets >= 30000);
    for (const verdict of ['accept', 'drop', 'reject']) {
      assert.ok((run.verdicts[verdict] ?? 0) > 300, `only ${run.verdicts[verdict]} packets with verdict ${verdict}`);
    }
    const looks = Object.values(run.filtered).reduce((sum, count) => sum + count, 0);
    assert.ok(looks > 1000, `filters looked at only ${looks} packets`);
  } finally {
    kernel.remove();
  }
});
