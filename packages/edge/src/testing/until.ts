/** Waits for a condition instead of for a time; fails with its own words when it does not come true. For tests. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMilliseconds = 10_000,
): Promise<void> {
  const end = performance.now() + deadlineMilliseconds;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMilliseconds} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
