import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { FromCollector } from '../bus/port.ts';
import { WorkerHandle } from './worker-handle.ts';

test('a worker that falls silent is ended and another receives on the same address', async (t) => {
  const heard: FromCollector[] = [];
  const logged: string[] = [];
  const log = (_: object, text: string): number => logged.push(text);
  const handle = new WorkerHandle({
    name: 'test',
    listen: [{ host: '127.0.0.1', port: 0 }],
    sharing: 1,
    sampleOctets: 1 << 20,
    receive: 'auto',
    log: { info: log, warn: log },
    send: (message) => heard.push(message),
    greeting: () => [],
    // A worker speaks four times a second: none is as quick as this wants.
    silenceMilliseconds: 60,
  });
  t.after(() => handle.stop());
  await handle.start();
  const deadline = performance.now() + 20_000;
  while (handle.restarts === 0 || handle.listening === undefined) {
    assert.ok(performance.now() < deadline, 'another worker listens');
    await pause(10);
  }
  assert.ok(logged.includes('a collector worker is silent and is ended'));
  assert.ok(logged.includes('a collector worker ended and is started anew'));
});
