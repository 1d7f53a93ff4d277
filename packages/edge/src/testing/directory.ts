/** A directory of a test's own, gone with the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export function ownDirectory(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), `levee-edge-${process.pid}-`));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
