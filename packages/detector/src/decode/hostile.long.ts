import { test } from 'node:test';
import { hostileRun } from './testing/hostile-run.ts';

const seed = Number(process.env.LEVEE_TEST_SEED ?? Date.now() % 1_000_000);

test(`1 200 000 damaged datagrams (seed ${seed}) do what damaged datagrams may do`, () => {
  for (let round = 0; round < 4; round += 1) hostileRun(seed + round, 300_000);
});
