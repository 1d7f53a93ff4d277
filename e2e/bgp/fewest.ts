/** A peer's number of FlowSpec routes, looked at without a pause while something else happens. */
import type { Bird } from '@levee/lab/bgp/bird.ts';

/** The fewest that it had from the first look to the last. Throws what `work` throws. */
export async function fewestDuring(bird: Bird, work: () => Promise<void>): Promise<number> {
  let fewest = await bird.flowCount();
  let working = true;
  const watch = (async () => {
    while (working) fewest = Math.min(fewest, await bird.flowCount());
  })();
  // It is waited for in any case: nothing may look at a peer that is being removed.
  const watched = watch.then(
    () => undefined,
    (error: unknown) => error,
  );
  try {
    await work();
  } finally {
    working = false;
    await watched;
  }
  await watch;
  return fewest;
}
