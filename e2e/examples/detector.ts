/** A detector for the run of the examples: connected, and with samples of whatever traffic is asked about. Detects nothing. */
import assert from 'node:assert/strict';
import type { SamplesWanted } from '@levee/contract/detector.ts';
import { sampleOf } from '@levee/server/commands/testing/detected.ts';
import { openDetectorStream } from '@levee/server/detectors/testing/detector-client.ts';

export interface FollowingDetector {
  stop(): Promise<void>;
}

const LOOK_MILLISECONDS = 10;

export async function followAsDetector(address: string, key: string): Promise<FollowingDetector> {
  const stream = await openDetectorStream(address, key);
  assert.equal(stream.status, 200);
  const answered = new Set<string>();
  const answer = async ({ request, dst }: SamplesWanted): Promise<void> => {
    answered.add(request);
    const now = Date.now();
    // Since the address is held, which is not for long.
    const packets = [3, 2, 1].map((before) => sampleOf(dst, now - before, 8 + before));
    await fetch(`${address}/detector/v1/samples`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ request, held: packets.length, packets }),
    });
  };
  const timer = setInterval(() => {
    for (const message of stream.messages) {
      if (message.type === 'samples_wanted' && !answered.has(message.request)) void answer(message);
    }
  }, LOOK_MILLISECONDS);
  return {
    async stop() {
      clearInterval(timer);
      stream.close();
    },
  };
}
