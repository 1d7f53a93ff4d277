import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { createKeyAlarm } from './key-alarm.ts';

test('a key that is not accepted is an error at once, then at most once a minute, and nothing else is', () => {
  const said: { level: number; msg: string }[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => said.push(JSON.parse(line)) });
  let now = 5;
  const alarm = createKeyAlarm(logger, 'enrol it again', () => now);
  for (const status of [200, 403, 500, 503]) alarm('a', status);
  assert.deepEqual(said, []);
  for (; now < 180_000; now += 1_000) alarm(now % 2 ? 'a' : 'b', 401);
  assert.equal(said.length, 3);
  for (const { level, msg } of said) {
    assert.equal(level, 50);
    assert.equal(msg, 'enrol it again');
  }
});
