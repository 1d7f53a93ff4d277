/**
 * Owns whether the wall clock was set: it is held against one that never steps. A process that stood still, and a clock that is slewed
 * (adjtime(3)), are no steps.
 */

export interface Clocks {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that never steps (CLOCK_MONOTONIC). */
  steady(): number;
}

/** Less moves what is measured by less than the four slots that are measured together. */
const leastStepMilliseconds = 1_000;
/** Both clocks are read within so much, or again: the process may stand still in between. */
const oneMomentMilliseconds = 20;
const mostReadings = 5;

export class ClockSteps {
  nowMs = 0;
  steadyMs = 0;
  readonly #clocks: Clocks;
  #apart: number;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.#read();
    this.#apart = this.nowMs - this.steadyMs;
  }

  /** Reads both clocks; answers by how many milliseconds the wall's was set since the last look: 0, or a second at least. */
  look(): number {
    this.#read();
    const apart = this.nowMs - this.steadyMs;
    const step = apart - this.#apart;
    this.#apart = apart;
    return Math.abs(step) < leastStepMilliseconds ? 0 : step;
  }

  #read(): void {
    for (let reading = 0; reading < mostReadings; reading++) {
      const before = this.#clocks.steady();
      this.nowMs = this.#clocks.now();
      this.steadyMs = this.#clocks.steady();
      if (this.steadyMs - before <= oneMomentMilliseconds) return;
    }
  }
}
