/**
 * How long it takes from the first packet of a sampled flood until the attack is told, by simulation: the flood sets in anywhere in a
 * slot. What exporter and network add is not in it; the collector tells of a slot 20 ms after its end.
 */
import type { Vector } from '@levee/core/detection/vector.ts';
import { SLOT_MILLISECONDS } from '../../bus/port.ts';
import { policy, Rig } from './rig.ts';

export interface LatencyOptions {
  readonly sampling: number;
  readonly pps: number;
  readonly threshold: number;
  readonly rounds: number;
  readonly vector: Vector;
}

/** Milliseconds, ascending; Infinity where it was not found in five seconds. */
export function measureLatency({ sampling, pps, threshold, rounds, vector }: LatencyOptions): number[] {
  const delays: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const rig = new Rig({ sampling, seed: round * 31 + 7, policies: [policy({ [vector]: { pps: threshold } })] });
    const flow = { dst: '203.0.113.7', vector, pps } as const;
    rig.run(1);
    const phase = (round + 0.5) / rounds;
    const startMs = rig.slotMs + SLOT_MILLISECONDS * phase;
    rig.slot([flow], 1 - phase);
    for (let slot = 0; slot < 5_000 / SLOT_MILLISECONDS && rig.attacks.length === 0; slot++) rig.slot([flow]);
    delays.push(rig.attacks.length === 0 ? Number.POSITIVE_INFINITY : rig.nowMs - startMs);
  }
  return delays.sort((a, b) => a - b);
}
