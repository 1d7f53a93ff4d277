import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { lockDirectory } from './directory-lock.ts';

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!holds()) {
    assert.ok(performance.now() < deadline, `${what}: not within 10 s`);
    await delay(5);
  }
}

const module = new URL('./directory-lock.ts', import.meta.url).href;

test('a directory that another process holds is refused, and says which; it is free once that one was killed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), `levee-lock-${process.pid}-`));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const directory = join(folder, 'made');
  const script = `import(${JSON.stringify(module)}).then(({lockDirectory}) => { const lock = lockDirectory(process.argv[1], 'a.lock'); process.stdout.write(String(lock.ok)); setInterval(() => {}, 1000); });`;
  const holder = spawn(process.execPath, ['-e', script, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  let said = '';
  holder.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await until('the other process holds it', () => said === 'true');
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.deepEqual(lockDirectory(directory, 'a.lock'), { ok: false, holder: `${holder.pid}` });
  holder.kill('SIGKILL');
  await until('it is free', () => {
    const lock = lockDirectory(directory, 'a.lock');
    if (lock.ok) lock.release();
    return lock.ok;
  });
});
