import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { rateRequest, windowSeconds } from './request-rate.ts';

/** Sends at the given moments (ms) and tells which were allowed. */
function send(moments: readonly number[], perMinute: number): boolean[] {
  let fullAt: number | undefined;
  return moments.map((at) => {
    const rated = rateRequest(fullAt, at, perMinute);
    fullAt = rated.fullAt;
    return rated.allowed;
  });
}

test('a full bucket lets exactly the quota through at once, and tells how many are left', () => {
  for (const perMinute of [1, 7, 60, 6000, 1_000_000]) {
    let fullAt: number | undefined;
    for (let index = 1; index <= Math.min(perMinute, 20_000); index++) {
      const rated = rateRequest(fullAt, 5, perMinute);
      assert.deepEqual([rated.allowed, rated.remaining], [true, perMinute - index], `${perMinute}: ${index}`);
      fullAt = rated.fullAt;
    }
    if (perMinute > 20_000) continue;
    const refused = rateRequest(fullAt, 5, perMinute);
    assert.deepEqual([refused.allowed, refused.remaining, refused.fullAt], [false, 0, fullAt]);
    assert.deepEqual([refused.resetSeconds, refused.retrySeconds], [60, Math.ceil(60 / perMinute)]);
  }
});

test('whoever waits as long as was told is allowed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 200 }),
      (perMinute, gaps) => {
        let at = 1000;
        let fullAt: number | undefined;
        for (const gap of gaps) {
          at += gap % 50;
          const rated = rateRequest(fullAt, at, perMinute);
          fullAt = rated.fullAt;
          if (!rated.allowed) assert.ok(rateRequest(fullAt, at + rated.retrySeconds * 1000, perMinute).allowed);
          else assert.equal(rated.retrySeconds === 0, rated.remaining > 0);
          const rested = rateRequest(fullAt, at + rated.resetSeconds * 1000, perMinute);
          assert.equal(rested.remaining, perMinute - 1);
        }
      },
    ),
  );
});

test('in no stretch of time is more allowed than a full bucket and what flows in', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 600 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 400 }),
      (perMinute, gaps) => {
        let at = 0;
        const moments = gaps.map((gap) => {
          at += gap;
          return at;
        });
        const allowed = moments.filter((_, index) => send(moments, perMinute)[index]);
        const begin = moments[0] ?? 0;
        const most = perMinute + ((at - begin) / 1000 / windowSeconds) * perMinute;
        assert.ok(allowed.length <= most + 1e-3, `${allowed.length} of ${most}`);
      },
    ),
    { numRuns: 30 },
  );
});

test('a client that keeps to its rate is never refused', () => {
  const moments = Array.from({ length: 5000 }, (_, index) => index * (60_000 / 700));
  assert.ok(send(moments, 700).every(Boolean));
});
