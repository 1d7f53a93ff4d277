import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../testing/until.ts';
import { createBatcher } from './batcher.ts';

test('after a rest work begins before the asker goes on', async () => {
  let begun = 0;
  const batcher = createBatcher(20, async () => {
    begun += 1;
    return true;
  });
  batcher.wake();
  assert.equal(begun, 1);
  await batcher.stop();
});

test('what is asked for within a period is one piece of work, at its end', async () => {
  const beginnings: number[] = [];
  const batcher = createBatcher(60, async () => {
    beginnings.push(performance.now());
    return true;
  });
  for (let n = 0; n < 10; n++) batcher.wake();
  await batcher.idle();
  assert.equal(beginnings.length, 2);
  assert.ok((beginnings[1] as number) - (beginnings[0] as number) >= 55);
});

test('work that needs no spacing does not hold up the next', async () => {
  let begun = 0;
  const batcher = createBatcher(60_000, async () => {
    begun += 1;
    return false;
  });
  for (let n = 1; n <= 5; n++) {
    batcher.wake();
    assert.equal(begun, n);
    await batcher.idle();
  }
  await batcher.stop();
});

test('work never overlaps, and what is asked for meanwhile is done next', async () => {
  let running = 0;
  let most = 0;
  let done = 0;
  let release: () => void = () => undefined;
  const batcher = createBatcher(0, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    running -= 1;
    done += 1;
    return true;
  });
  batcher.wake();
  batcher.wake();
  release();
  await until('the second one runs', () => done === 1 && running === 1);
  release();
  await batcher.idle();
  assert.deepEqual([most, done], [1, 2]);
});

test('stopping waits for what is under way and begins nothing more', async () => {
  let done = 0;
  const batcher = createBatcher(0, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    done += 1;
    return true;
  });
  batcher.wake();
  batcher.wake();
  await batcher.stop();
  assert.equal(done, 1);
  batcher.wake();
  await batcher.idle();
  assert.equal(done, 1);
});
