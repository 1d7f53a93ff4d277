/** A hundred thousand hostile requests, from a seed of this run's own: the same test as the quick one. */
process.env.LEVEE_TEST_REQUESTS = '100000';
process.env.LEVEE_TEST_SEED ??= String((Date.now() % 2_000_000_000) + 1);
console.log(`LEVEE_TEST_SEED=${process.env.LEVEE_TEST_SEED}`);
await import('./hostile-requests.test.ts');
