import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { writeArchive } from './cpio-archive.ts';
import { guestObstacle } from './guest.ts';

const skip = guestObstacle() ?? false;

test('busybox reads an archive as it was written: folders, modes, contents of every length', { skip }, () => {
  const archive = writeArchive([
    { path: 'folder' },
    { path: 'folder/program', content: '#!', executable: true },
    ...[0, 1, 2, 3, 4, 5].map((length) => ({ path: `f${length}`, content: 'x'.repeat(length) })),
  ]);
  const listed = execFileSync('/bin/busybox', ['cpio', '-itv'], { input: archive, encoding: 'utf8', stdio: 'pipe' });
  const rows = listed.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return fields.length > 5 ? [`${fields[0]} ${fields[2]} ${fields.at(-1)}`] : [];
  });
  assert.deepEqual(rows, [
    'drwxr-xr-x 0 folder',
    '-rwxr-xr-x 2 folder/program',
    ...[0, 1, 2, 3, 4, 5].map((length) => `-rw-r--r-- ${length} f${length}`),
  ]);
});
