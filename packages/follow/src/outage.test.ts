import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { watchOutage } from './outage.ts';

function watched() {
  const lines: { level: number; msg: string; reason?: string }[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const clock = { at: 1_000 };
  return { lines, clock, outage: watchOutage(logger, 'not connected', () => clock.at) };
}

test('a failure that ends within moments is not told', () => {
  const { lines, clock, outage } = watched();
  outage.failed({ reason: 'ENOENT' });
  clock.at += 2_900;
  outage.failed({ reason: 'ENOENT' });
  outage.over();
  outage.failed({ reason: 'ENOENT' });
  assert.deepEqual(lines, []);
});

test('one that lasts is told once, with its present reason, and so is its end', () => {
  const { lines, clock, outage } = watched();
  outage.failed({ reason: 'ENOENT' });
  clock.at += 3_000;
  outage.failed({ reason: 'ECONNREFUSED' });
  outage.failed({ reason: 'ECONNREFUSED' });
  clock.at += 9_000;
  outage.over();
  outage.over();
  assert.deepEqual(
    lines.map(({ msg, reason }) => [msg, reason]),
    [
      ['not connected', 'ECONNREFUSED'],
      ['over after 12 s: not connected', undefined],
    ],
  );
});

test('a later outage has its own patience', () => {
  const { lines, clock, outage } = watched();
  outage.failed({});
  clock.at += 5_000;
  outage.failed({});
  outage.over();
  outage.failed({});
  assert.equal(lines.length, 2);
  clock.at += 3_000;
  outage.failed({});
  assert.equal(lines.length, 3);
});
