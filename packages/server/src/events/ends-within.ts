/** Waits for work, but not for ever: what does not end in time is left behind. Owns no work. */

/** Whether it ended in time, well or not. */
export async function endsWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, milliseconds, false);
  const ended = work.then(
    () => true,
    () => true,
  );
  return Promise.race([ended, late]).finally(() => clearTimeout(timer));
}
