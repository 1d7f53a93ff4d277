/**
 * Owns what detectors know of each other's attacks: whoever takes a share over goes on with those that are in it, under their names, also with
 * those that the control plane was not told of yet. Bounded. Judges nothing.
 */
import type { DetectedAttack, DetectorSettings, OngoingAttack } from '@levee/contract/detector.ts';

const mostOngoing = 8_192;
const mostEnded = 4_096;

export class SharedAttacks {
  readonly #ongoing = new Map<string, OngoingAttack>();
  readonly #ended = new Set<string>();

  get ended(): readonly string[] {
    return [...this.#ended];
  }

  /** What was told of them here. */
  told(attacks: readonly DetectedAttack[]): {
    readonly ongoing: readonly OngoingAttack[];
    readonly ended: readonly string[];
  } {
    const ongoing: OngoingAttack[] = [];
    const ended: string[] = [];
    for (const { phase, id, dst, vectors, started_ms, detected_ms, packets, bytes, sampled, threshold } of attacks) {
      if (phase === 'ended') ended.push(id);
      else ongoing.push({ id, dst, vectors, started_ms, detected_ms, told: { packets, bytes, sampled, threshold } });
    }
    this.heard({ ongoing, ended });
    return { ongoing: ongoing.filter(({ id }) => this.#ongoing.has(id)), ended };
  }

  heard({ ongoing, ended }: { readonly ongoing: readonly OngoingAttack[]; readonly ended: readonly string[] }): void {
    for (const id of ended) {
      this.#ongoing.delete(id);
      this.#ended.delete(id);
      this.#ended.add(id);
      if (this.#ended.size > mostEnded) this.#ended.delete(this.#ended.values().next().value as string);
    }
    for (const each of ongoing) {
      if (this.#ended.has(each.id)) continue;
      this.#ongoing.delete(each.id);
      this.#ongoing.set(each.id, each);
      if (this.#ongoing.size > mostOngoing) this.#ongoing.delete(this.#ongoing.keys().next().value as string);
    }
  }

  /** Of the destinations for which it is asked. */
  ongoing(isWanted: (dst: string) => boolean): OngoingAttack[] {
    return [...this.#ongoing.values()].filter(({ dst }) => isWanted(dst));
  }

  /** Settings with what is known here: newer than the control plane's where both know it. */
  with(settings: DetectorSettings): DetectorSettings {
    const all = new Map(settings.ongoing.map((each) => [each.id, each]));
    for (const [id, each] of this.#ongoing) all.set(id, each);
    for (const id of this.#ended) all.delete(id);
    return { ...settings, ongoing: [...all.values()] };
  }
}
