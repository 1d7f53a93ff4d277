import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { createLocalBus, sendFromWorker } from './local.ts';
import type { FromCollector, SlotReport, ToCollector } from './port.ts';

function slot(): SlotReport {
  return {
    type: 'slot',
    collector: 'one',
    sequence: 4,
    slotMs: 250,
    count: 1,
    families: Uint8Array.of(4),
    addresses: Uint32Array.of(7, 0, 0, 0),
    vectors: Uint8Array.of(1),
    packets: Float64Array.of(16),
    bytes: Float64Array.of(1600),
    samples: Float64Array.of(1),
    profiles: [],
  };
}

test('each end hears what the other says, in order, and nothing after it was closed', async () => {
  const { detector, collector } = createLocalBus();
  const atDetector: FromCollector[] = [];
  const atCollector: ToCollector[] = [];
  detector.onMessage((message) => atDetector.push(message));
  collector.onMessage((message) => atCollector.push(message));
  const first = slot();
  const second = { ...slot(), sequence: 5 };
  collector.send(first);
  collector.send(second);
  const hot: ToCollector = { type: 'hot', detector: 'd', destinations: ['203.0.113.7'] };
  detector.send(hot);
  assert.deepEqual(atDetector, [first, second]);
  assert.deepEqual(atCollector, [hot]);
  await detector.close();
  collector.send(first);
  assert.equal(atDetector.length, 2);
});

test('the columns of a slot are handed over from a worker, not copied', async () => {
  const { port1, port2 } = new MessageChannel();
  try {
    const sent = slot();
    const heard = once(port1, 'message');
    sendFromWorker(port2, sent);
    assert.equal(sent.packets.length, 0, 'the sender has them no more');
    assert.equal(sent.addresses.length, 0);
    assert.deepEqual((await heard)[0], slot());
  } finally {
    port1.close();
  }
});
