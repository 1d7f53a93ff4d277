import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ownDirectory } from '../testing/directory.ts';
import { until } from '../testing/until.ts';
import { lockDirectory } from './lock.ts';

const module = new URL('./lock.ts', import.meta.url).href;

test('a directory that another process holds is refused, and says which; it is free once that one was killed', async (t) => {
  const directory = join(ownDirectory(t), 'made');
  const script = `import(${JSON.stringify(module)}).then(({lockDirectory}) => { const lock = lockDirectory(process.argv[1]); process.stdout.write(String(lock.ok)); setInterval(() => {}, 1000); });`;
  const holder = spawn(process.execPath, ['-e', script, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  let said = '';
  holder.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await until('the other process holds it', () => said === 'true');
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.deepEqual(lockDirectory(directory), { ok: false, holder: `${holder.pid}` });
  holder.kill('SIGKILL');
  await until('it is free', () => {
    const lock = lockDirectory(directory);
    if (lock.ok) lock.release();
    return lock.ok;
  });
});
