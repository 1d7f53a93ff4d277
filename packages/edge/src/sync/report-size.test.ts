import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentHit } from '@levee/contract/agent.ts';
import { fitFailures, hitsPerReport, takeHits } from './report-size.ts';

const uuidOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

test('hits are paged in order, none lost and none twice', () => {
  const gathered = new Map<string, AgentHit>();
  for (let n = 0; n < 2 * hitsPerReport + 7; n++) {
    gathered.set(uuidOf(n), { uuid: uuidOf(n), packets: n, bytes: n, last_hit_at: '2026-01-01T00:00:00.000Z' });
  }
  const all = [...gathered.values()];
  const pages = [takeHits(gathered), takeHits(gathered), takeHits(gathered), takeHits(gathered)];
  assert.deepEqual(
    pages.map((page) => page.length),
    [hitsPerReport, hitsPerReport, 7, 0],
  );
  assert.deepEqual(pages.flat(), all);
});

test('a page of the largest hits and the refusals of a hundred thousand rules stay below 16 MiB together', () => {
  const largest = Number.MAX_SAFE_INTEGER;
  const hits = Array.from({ length: hitsPerReport }, (_, n) => ({
    uuid: uuidOf(n),
    packets: largest,
    bytes: largest,
    last_hit_at: '2026-01-01T00:00:00.000Z',
    shared_by: 2 ** 31 - 1,
  }));
  for (const reason of ['x'.repeat(500), '\u0001"\\'.repeat(200), '€\u{1f6a7}'.repeat(200)]) {
    const failures = Array.from({ length: 100_000 }, (_, n) => ({ uuid: uuidOf(n), reason }));
    const fitted = fitFailures(failures);
    assert.equal(fitted.length, failures.length);
    assert.ok(fitted.every((each, n) => each.uuid === failures[n]?.uuid && reason.startsWith(each.reason)));
    const report = JSON.stringify({ counters: { hits }, failures: fitted });
    assert.ok(Buffer.byteLength(report) < 16 * 1024 * 1024, `${Buffer.byteLength(report)} bytes`);
    assert.ok((fitted[0]?.reason.length ?? 0) > 5);
  }
});

test('the reasons of a few refused rules are told whole', () => {
  const failures = [{ uuid: uuidOf(1), reason: 'y'.repeat(2000) }];
  assert.equal(fitFailures(failures), failures);
});
