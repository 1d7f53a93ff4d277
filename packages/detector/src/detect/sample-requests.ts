/**
 * Owns when collectors are asked for packets of an attack, and which answer is for which: at its start, then ever more
 * rarely, a thousand in all. Never keeps packets.
 */
import type { CollectedSamples, ToCollector } from '../bus/port.ts';
import type { Attack } from './attack.ts';

const mostOfAttack = 1_000;
const mostAtOnce = 100;
/** Milliseconds from the moment at which it was found; then as often as between the last two. */
const moments = [250, 5_000, 30_000, 120_000, 600_000];
const prefix = 'attack ';

interface Asked {
  count: number;
  sinceMs: number;
  taken: number;
}

export class SampleRequests {
  readonly #byAttack = new Map<Attack, Asked>();
  readonly #send: (message: ToCollector) => void;

  constructor(send: (message: ToCollector) => void) {
    this.#send = send;
  }

  /** Once a slot, with the attacks that go on. */
  ask(attacks: Iterable<Attack>, nowMs: number): void {
    for (const attack of attacks) {
      let asked = this.#byAttack.get(attack);
      if (asked === undefined) {
        asked = { count: 0, sinceMs: attack.startedMs, taken: 0 };
        this.#byAttack.set(attack, asked);
      }
      if (asked.taken >= mostOfAttack || nowMs < momentOf(attack, asked.count)) continue;
      // One that was taken over from another detector was asked about before.
      while (nowMs >= momentOf(attack, asked.count)) asked.count++;
      const most = Math.min(mostAtOnce, mostOfAttack - asked.taken);
      const sinceMs = asked.sinceMs;
      asked.sinceMs = nowMs;
      this.#send({ type: 'samples_wanted', request: prefix + attack.id, dst: attack.dst, sinceMs, most });
    }
  }

  /** False: the answer is somebody else's. */
  take({ request, packets }: CollectedSamples): boolean {
    if (!request.startsWith(prefix)) return false;
    for (const [attack, asked] of this.#byAttack) {
      if (prefix + attack.id !== request) continue;
      const taken = packets.slice(0, mostOfAttack - asked.taken);
      asked.taken += taken.length;
      attack.keepSamples(taken);
    }
    return true;
  }

  forget(attack: Attack): void {
    this.#byAttack.delete(attack);
  }
}

function momentOf({ detectedMs }: Attack, count: number): number {
  const last = moments.length - 1;
  const step = (moments[last] ?? 0) - (moments[last - 1] ?? 0);
  return detectedMs + (moments[count] ?? (moments[last] ?? 0) + (count - last) * step);
}
