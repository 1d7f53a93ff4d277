/** Guarantees of supervision, held against real child processes that are really killed. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultBackoff, waitMilliseconds } from './backoff.ts';
import { describeEnding, type Ending, type ProcessSpec, SupervisedProcess } from './supervised-process.ts';

const quick = { firstMilliseconds: 10, longestMilliseconds: 80, recoveredMilliseconds: 60_000 };
const started: SupervisedProcess[] = [];
after(() => Promise.all(started.map((each) => each.stop())));

function supervise(script: string, more: Partial<ProcessSpec> = {}): SupervisedProcess {
  const each = new SupervisedProcess({
    name: 'child',
    command: () => ({ argv: [process.execPath, '-e', script], environment: process.env }),
    backoff: quick,
    ...more,
  });
  started.push(each);
  return each;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    assert.ok(Date.now() < deadline, `${what} did not happen within 20 s`);
    await delay(5);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const forever = 'process.send({ pid: process.pid }); setInterval(() => {}, 1000);';

test('a child killed by SIGKILL is started again, and its messages are heard', async () => {
  const heard: unknown[] = [];
  const endings: Ending[] = [];
  const child = supervise(forever, { onMessage: (m) => heard.push(m), onEnd: (ending) => endings.push(ending) });
  child.start();
  await until(() => heard.length === 1, 'the first message');
  const first = child.pid;
  assert.deepEqual(heard[0], { pid: first });
  process.kill(first ?? 0, 'SIGKILL');
  await until(() => heard.length === 2, 'the second message');
  assert.notEqual(child.pid, first);
  assert.equal(child.restarts, 1);
  assert.equal(describeEnding(endings[0] as Ending), 'was killed by SIGKILL');
});

test('a child that keeps ending is started ever more rarely, and can be given up', async () => {
  const waits: number[] = [];
  const child = supervise('process.exit(3)', {
    onEnd(ending, next) {
      assert.equal(describeEnding(ending), 'ended with status 3');
      waits.push(next.waitMilliseconds);
      if (waits.length === 5) next.giveUp();
    },
  });
  child.start();
  await until(() => waits.length === 5, 'five endings');
  assert.deepEqual(waits, [10, 20, 40, 80, 80]);
  await delay(2 * quick.longestMilliseconds);
  assert.equal(child.pid, undefined);
  assert.equal(waits.length, 5);
});

test('a program that does not exist is an ending like any other', async () => {
  let told = '';
  const child = supervise('', {
    command: () => ({ argv: ['/nonexistent/program'], environment: {} }),
    onEnd(ending, next) {
      told = describeEnding(ending);
      next.giveUp();
    },
  });
  child.start();
  await until(() => told !== '', 'the ending');
  assert.match(told, /^could not be started: .*ENOENT/);
});

test('a child that ignores SIGTERM is killed after the grace, and no other is started', async () => {
  let ready = 0;
  const child = supervise(`process.on('SIGTERM', () => {}); ${forever}`, {
    onMessage: () => ready++,
    graceMilliseconds: 100,
  });
  child.start();
  await until(() => ready === 1, 'the start');
  const pid = child.pid ?? 0;
  await child.stop();
  assert.ok(!isAlive(pid));
  assert.equal(child.pid, undefined);
  assert.equal(ready, 1);
});

test('stopping while the next start is awaited leaves nothing running', async () => {
  const child = supervise('process.exit(1)', { backoff: { ...quick, firstMilliseconds: 50 } });
  child.start();
  await until(() => child.pid === undefined, 'the ending');
  await child.stop();
  await delay(120);
  assert.equal(child.pid, undefined);
  assert.equal(child.restarts, 0);
});

test('a child that lived long enough, or said that it works, starts over with the shortest wait', async () => {
  for (const how of ['lived', 'said']) {
    const waits: number[] = [];
    const child = supervise('process.send("works", () => process.exit(1))', {
      backoff: { ...quick, recoveredMilliseconds: how === 'lived' ? 0 : 60_000 },
      onMessage: () => how === 'said' && child.noteRecovery(),
      onEnd(_, next) {
        waits.push(next.waitMilliseconds);
        if (waits.length === 3) next.giveUp();
      },
    });
    child.start();
    await until(() => waits.length === 3, 'three endings');
    assert.deepEqual(waits, [10, 10, 10], how);
  }
});

const beating = 'setInterval(() => process.send("alive"), 20);';

test('a child that hangs is told of, killed and started again; one that only paused goes on', async () => {
  const told: (readonly [boolean, boolean])[] = [];
  const pids = new Set<number | undefined>();
  const child: SupervisedProcess = supervise(beating, {
    silence: { lookMilliseconds: 50, toldLooks: 4, killedLooks: 20 },
    onSilence: (milliseconds, isKilled) => told.push([milliseconds !== undefined, isKilled]),
    onMessage: () => pids.add(child.pid),
  });
  child.start();
  await until(() => pids.size === 1, 'the first message');
  process.kill(child.pid ?? 0, 'SIGSTOP');
  await until(() => told.length === 1, 'the word that it is silent');
  process.kill(child.pid ?? 0, 'SIGCONT');
  await until(() => told.length === 2, 'the word that it speaks');
  assert.equal(pids.size, 1);
  process.kill(child.pid ?? 0, 'SIGSTOP');
  await until(() => pids.size === 2, 'another child');
  assert.deepEqual(told, [
    [true, false],
    [false, false],
    [true, false],
    [true, true],
  ]);
  assert.equal(child.restarts, 1);
});

test('a machine that stood still has no child that hangs', async () => {
  let heard = 0;
  let told = 0;
  const child = supervise(beating, {
    silence: { lookMilliseconds: 50, toldLooks: 3, killedLooks: 10 },
    onSilence: () => told++,
    onMessage: () => heard++,
  });
  child.start();
  await until(() => heard > 0, 'the first message');
  const pid = child.pid ?? 0;
  // Both stand still: we by doing nothing else for longer than any silence.
  process.kill(pid, 'SIGSTOP');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  process.kill(pid, 'SIGCONT');
  const before = heard;
  await until(() => heard > before + 5, 'more messages');
  assert.deepEqual([told, child.pid], [0, pid]);
});

test('the wait doubles from a tenth of a second up to its bound', () => {
  assert.deepEqual(
    [1, 2, 3, 1_000].map((failures) => waitMilliseconds(defaultBackoff, failures)),
    [100, 200, 400, defaultBackoff.longestMilliseconds],
  );
});
