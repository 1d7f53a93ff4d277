/**
 * A flood through a router whose limits are measured: sent until a run had no pause in which tokens went to waste, every
 * arriving frame counted. Must never judge what arrived.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { type FloodResult, startFlood } from '@levee/lab/flood.ts';
import { openPacketSocket } from '@levee/lab/packet-socket.ts';
import { device, type RouterPath } from '@levee/lab/router-path.ts';
import { Observation } from './kernel-path.ts';

/** A sender that was held up for longer than a burst lasts lets tokens go to waste: then nothing was measured. */
const longestPauseSeconds = 0.09;
const attempts = 6;

export interface MeasuredFlood {
  readonly path: RouterPath;
  readonly frames: readonly Uint8Array[];
  readonly seconds: number;
  readonly packetsPerSecond: number;
  /** Before each attempt: gives full buckets. */
  readonly reload: () => void;
  /** About every 20 ms. */
  readonly meanwhile?: () => void;
}

export interface Measured {
  readonly result: FloodResult;
  readonly seen: Observation;
}

export async function measureFlood({ path, reload, meanwhile, ...flood }: MeasuredFlood): Promise<Measured> {
  for (let attempt = 1; ; attempt++) {
    reload();
    using customer = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 64 });
    using attacker = openPacketSocket(path.attacker, { device: device.attacker, receiveBytes: 128 });
    const seen = new Observation();
    const running = startFlood({ namespace: path.attacker.name, device: device.attacker, ...flood });
    let over = false;
    const finished = running.finished.finally(() => {
      over = true;
    });
    const collect = (): void => {
      customer.receive((frame) => seen.takeForwarded(frame));
      attacker.receive((frame) => seen.takeAnswer(frame));
    };
    while (!over) {
      await pause(20);
      meanwhile?.();
      collect();
    }
    const result = await finished;
    collect();
    assert.equal(customer.droppedFrames() + attacker.droppedFrames(), 0);
    if (result.longestPauseSeconds <= longestPauseSeconds) return { result, seen };
    assert.ok(
      attempt < attempts,
      `the sender was held up for ${result.longestPauseSeconds} s in each of ${attempts} runs`,
    );
  }
}
