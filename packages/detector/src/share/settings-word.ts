/**
 * Owns whose settings a collector goes by: which of those that detectors tell it takes, and when a detector tells its own again. Pure.
 * Revisions rise over all replicas of the control plane, unless its database was set back.
 */

/** A collector with older settings is told again, at most so often. */
const repeatMilliseconds = 2_000;
/**
 * And all are told again so often whatever they have: those whose settings are of this detector hold to them by it, and those that have
 * a higher revision take these when nobody tells of theirs any more.
 */
const confirmMilliseconds = 20_000;
/** Older settings than these are taken when nobody has told of these for so long. */
const staleMilliseconds = 60_000;

/** The detector's side. */
export class SettingsTeller {
  #toldMs = Number.NEGATIVE_INFINITY;

  told(nowMs: number): void {
    this.#toldMs = nowMs;
  }

  /** `heard`: the revision that a collector goes by. */
  isDue(own: number, heard: number, nowMs: number): boolean {
    return nowMs - this.#toldMs >= (heard < own ? repeatMilliseconds : confirmMilliseconds);
  }
}

/** The collector's side. */
export class SettingsTaker {
  #revision: number | undefined;
  #confirmedMs = Number.NEGATIVE_INFINITY;

  /** `kept`: of the settings that it begins by. Whatever is told first goes before them. */
  constructor(kept: number | undefined) {
    this.#revision = kept;
  }

  /** Whether it goes by these from now on; false also where it does already. */
  take(told: number, nowMs: number): boolean {
    const before = this.#revision;
    if (before !== undefined && told < before && nowMs - this.#confirmedMs < staleMilliseconds) return false;
    this.#confirmedMs = nowMs;
    this.#revision = told;
    return told !== before;
  }
}
