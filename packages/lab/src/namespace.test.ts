import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { labObstacle, Namespace } from './namespace.ts';

const skip = labObstacle() ?? false;
const exists = (name: string): boolean => existsSync(`/run/netns/${name}`);
const here = (): string => readlinkSync('/proc/thread-self/ns/net');

/** A process that made one namespace, and that namespace's name. */
async function processWithNamespace(): Promise<{ child: ChildProcess; name: string }> {
  const program = `
    import { Namespace } from ${JSON.stringify(new URL('./namespace.ts', import.meta.url).href)};
    console.log(new Namespace('child').name);
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [name] = (await once(lines, 'line')) as [string];
  return { child, name };
}

test('a namespace is there until it is disposed of', { skip }, () => {
  let name: string;
  {
    using namespace = new Namespace('one');
    name = namespace.name;
    assert.ok(exists(name));
  }
  assert.ok(!exists(name));
});

test('work enters a namespace and the thread comes back, also when it throws', { skip }, () => {
  using namespace = new Namespace('enter');
  const outside = here();
  const inside = namespace.enter(here);
  assert.notEqual(inside, outside);
  assert.equal(here(), outside);
  assert.throws(
    () =>
      namespace.enter(() => {
        throw new Error('inside');
      }),
    /inside/,
  );
  assert.equal(here(), outside);
});

test('a process that is told to end takes its namespaces with it and ends by that signal', { skip }, async () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const { child, name } = await processWithNamespace();
    assert.ok(exists(name));
    child.kill(signal);
    const [, endedBy] = await once(child, 'exit');
    assert.equal(endedBy, signal);
    assert.ok(!exists(name));
  }
});

test('what a killed process left is removed by the next one', { skip }, async () => {
  const { child, name } = await processWithNamespace();
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.ok(exists(name));
  const next = await processWithNamespace();
  try {
    assert.ok(!exists(name));
  } finally {
    next.child.kill('SIGTERM');
    await once(next.child, 'exit');
  }
});

test('a refused command says what ip or nft said', { skip }, () => {
  using namespace = new Namespace('refused');
  assert.throws(() => namespace.ip(['link set nowhere up']), /Cannot find device/);
  assert.throws(() => namespace.loadNft('add rule inet nowhere x drop\n'), /No such file or directory/);
});
