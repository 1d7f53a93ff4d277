/** A sleep that others may end. One that is rung while nobody sleeps ends the next sleep at once. */
export class Alarm {
  #rung = false;
  #wake: (() => void) | undefined;

  readonly ring = (): void => {
    this.#rung = true;
    this.#wake?.();
  };

  /** Until it is rung, the signal is aborted, or the moment has come (milliseconds since 1970). */
  async sleep(until: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = Number.isFinite(until) ? setTimeout(resolve, Math.max(0, until - Date.now())) : undefined;
      this.#wake = resolve;
      signal.addEventListener('abort', this.ring, { once: true });
      await promise;
      signal.removeEventListener('abort', this.ring);
      this.#wake = undefined;
      clearTimeout(timer);
    }
    this.#rung = false;
  }
}
