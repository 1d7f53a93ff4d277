/**
 * Owns the making of an attack from what the control plane knows of it: one that another detector, or a run before, has begun.
 */
import type { OngoingAttack } from '@levee/contract/detector.ts';
import { TOTAL, type Vector, vectors as vectorNames, vectorNumber } from '@levee/core/detection/vector.ts';
import { Attack } from './attack.ts';

const none = -1;

/** `dst` is canonical. It has no place and no hold yet, and lives of nothing until limits are looked up. */
export function adoptedAttack(
  { id, vectors, started_ms, detected_ms, told }: OngoingAttack,
  dst: string,
  nowMs: number,
): Attack {
  const known = vectors.map((name) => vectorNumber(name as Vector)).filter((vector) => vector !== undefined);
  const [first = TOTAL] = known;
  const attack = new Attack(
    {
      id,
      dst,
      startedMs: started_ms,
      detectedMs: detected_ms,
      holdMilliseconds: 0,
      threshold: told?.threshold ?? {
        policy: 'default',
        vector: vectorNames[first] as string,
        metric: 'pps',
        value: 0,
        observed: 0,
      },
    },
    none,
    nowMs,
  );
  for (const vector of known) {
    const metric = told !== undefined && told.threshold.vector === vectorNames[vector] ? told.threshold.metric : 'pps';
    attack.join(vector, { metric, value: Number.POSITIVE_INFINITY }, nowMs);
  }
  attack.packets = told?.packets ?? 0;
  attack.bytes = told?.bytes ?? 0;
  attack.sampled = told?.sampled ?? 0;
  return attack;
}
