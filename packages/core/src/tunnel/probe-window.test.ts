import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addFinding, type ProbeFinding, type ProbeMinute, summarise } from './probe-window.ts';

const start = Date.UTC(2026, 0, 31, 12);
const second = 1_000;

function windowOf(findings: readonly (readonly [seconds: number, finding: ProbeFinding])[]): readonly ProbeMinute[] {
  return findings.reduce<readonly ProbeMinute[]>(
    (window, [seconds, finding]) => addFinding(window, finding, start + seconds * second),
    [],
  );
}

const answered = (milliseconds: number): ProbeFinding => ({
  sent: 1,
  received: 1,
  rtt: { min: milliseconds, avg: milliseconds, max: milliseconds },
});
const lost: ProbeFinding = { sent: 1, received: 0 };

test('loss and round trips are those of all findings of the window', () => {
  const window = windowOf([
    [0, answered(10)],
    [10, answered(20)],
    [20, lost],
    [70, { sent: 3, received: 2, rtt: { min: 5, avg: 30, max: 55.0004 } }],
  ]);
  assert.deepEqual(summarise(window), { lossPercent: 33.3, rtt: { min: 5, avg: 22.5, max: 55 } });
  assert.equal(window.length, 2, 'a minute is one entry');
});

test('what lies five minutes back is forgotten, after a silence too', () => {
  const window = windowOf([
    [0, lost],
    [60, answered(8)],
    [300, answered(4)],
  ]);
  assert.deepEqual(summarise(window), { lossPercent: 0, rtt: { min: 4, avg: 6, max: 8 } });
  assert.deepEqual(summarise(addFinding(window, lost, start + 86_400 * second)), { lossPercent: 100 });
});

test('an answer that comes late makes no loss below nothing', () => {
  const window = windowOf([
    [0, lost],
    [10, { sent: 1, received: 2, rtt: { min: 3, avg: 5, max: 7 } }],
    [20, { sent: 0, received: 1, rtt: { min: 2, avg: 2, max: 2 } }],
  ]);
  assert.deepEqual(summarise(window), { lossPercent: 0, rtt: { min: 2, avg: 4, max: 7 } });
});

test('where nothing was sent there is nothing to say', () => {
  assert.equal(summarise([]), undefined);
  assert.equal(summarise(windowOf([[0, { sent: 0, received: 0 }]])), undefined);
});
