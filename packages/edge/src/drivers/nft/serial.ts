/**
 * Runs asynchronous pieces of work one after the other, in the order of asking. A failure belongs to its own asker
 * alone.
 */
export interface Serial {
  run<T>(work: () => Promise<T> | T): Promise<T>;
  /** Resolves when everything asked so far is done. */
  idle(): Promise<void>;
}

export function createSerial(): Serial {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run<T>(work: () => Promise<T> | T): Promise<T> {
      const next = last.then(work);
      last = next.catch(() => undefined);
      return next;
    },
    async idle() {
      await last;
    },
  };
}
