import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SamplesAnswer } from '@levee/contract/detector.ts';
import type { CollectedSamples, ToCollector } from '../bus/port.ts';
import { createWantedSamples } from './wanted-samples.ts';

const collected = (collector: string, request: string, times: readonly number[]): CollectedSamples => ({
  type: 'samples',
  collector,
  request,
  held: times.length + 10,
  packets: times.map((at_ms) => ({ at_ms, scale: 1, exporter: 'e', length: 60, header: '' })),
});

function wantedOf(collectors: number, patienceMilliseconds: number) {
  const sent: ToCollector[] = [];
  const { promise, resolve } = Promise.withResolvers<SamplesAnswer>();
  const wanted = createWantedSamples({
    send: (message) => sent.push(message),
    answer: resolve,
    collectors: () => collectors,
    patienceMilliseconds,
    now: () => 100_000,
  });
  return { wanted, sent, answer: promise };
}
const request = { type: 'samples_wanted', request: 'r', dst: '203.0.113.7', seconds: 60, most: 3 } as const;

test('all collectors are asked; the newest of all of them are the answer, at once when all have answered', async () => {
  const { wanted, sent, answer } = wantedOf(2, 60_000);
  wanted.ask(request);
  assert.deepEqual(sent, [{ type: 'samples_wanted', request: 'r', dst: '203.0.113.7', sinceMs: 40_000, most: 3 }]);
  wanted.heard(collected('other', 'another request', [9]));
  wanted.heard(collected('one', 'r', [1, 5]));
  wanted.heard(collected('one', 'r', [7]));
  wanted.heard(collected('two', 'r', [4, 3]));
  const { held, packets } = await answer;
  assert.equal(held, 24);
  assert.deepEqual(
    packets.map(({ at_ms }) => at_ms),
    [5, 4, 3],
  );
});

test('a collector that says nothing is not waited for', async () => {
  const { wanted, answer } = wantedOf(2, 20);
  wanted.ask(request);
  wanted.heard(collected('one', 'r', [1]));
  assert.deepEqual(
    (await answer).packets.map(({ at_ms }) => at_ms),
    [1],
  );
  wanted.stop();
});
