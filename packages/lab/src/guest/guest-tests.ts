/**
 * Runs a file of tests (node:test) in a guest and shows each of its tests as one of this run. Owns the translation: a
 * guest that ends early, or tells of no test, fails.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { TestLine } from './event-lines.ts';
import { runGuest } from './guest.ts';

export interface GuestTests {
  /** Absolute path. */
  readonly file: string;
  /** The tests run there, to be in the checkout. */
  readonly directory: string;
  readonly memoryMegabytes?: number;
  readonly modules: readonly string[];
  readonly near: readonly string[];
  /** Programs that the tests start, besides their own file: compiled beforehand, because the guest takes ten times longer. */
  readonly programs: readonly string[];
  readonly deadlineMilliseconds: number;
}

const ownNode = process.execPath;
export async function runTestsInGuest(context: TestContext, tests: GuestTests): Promise<void> {
  const compiled = mkdtempSync(join(tmpdir(), `levee-compiled-${process.pid}-`));
  context.after(() => rmSync(compiled, { recursive: true, force: true }));
  compile(tests.programs, compiled);
  const told: TestLine[] = [];
  const other: string[] = [];
  const outcome = await runGuest({
    command: [
      ownNode,
      '--test-reporter',
      join(import.meta.dirname, 'event-lines.ts'),
      ...['--test-reporter-destination', 'stdout', tests.file],
    ],
    directory: tests.directory,
    environment: { NODE_COMPILE_CACHE: compiled },
    modules: tests.modules,
    near: [...tests.near, compiled],
    memoryMegabytes: tests.memoryMegabytes ?? 1024,
    processors: 2,
    deadlineMilliseconds: tests.deadlineMilliseconds,
    line(text) {
      const line = readLine(text);
      if (line === undefined) other.push(text);
      else told.push(line);
    },
  });
  for (const line of told) {
    if (line.kind === 'say') {
      context.diagnostic(line.text);
      continue;
    }
    const skip = line.skipped === undefined ? false : line.skipped;
    await context.test(`${line.text} (${line.seconds?.toFixed(1)} s in the guest)`, { skip }, () => {
      if (line.kind === 'fail') throw new Error(line.error ?? 'it failed in the guest');
    });
  }
  const rest = [...other, outcome.console].join('\n');
  assert.equal(outcome.timedOut, false, `the guest did not end in time:\n${rest}`);
  assert.equal(outcome.status === 0 || told.some(({ kind }) => kind === 'fail'), true, `the guest failed:\n${rest}`);
  assert.ok(
    told.some(({ kind }) => kind !== 'say'),
    `the guest told of no test:\n${rest}`,
  );
}

/** Node keeps what it made of each source by its path and content, and takes it up in the guest, where both are the same. */
function compile(programs: readonly string[], directory: string): void {
  const script = 'for (const file of process.argv.slice(1)) await import(file); process.exit()';
  execFileSync(ownNode, ['--input-type=module', '-e', script, ...programs], {
    env: { ...process.env, NODE_COMPILE_CACHE: directory },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

function readLine(text: string): TestLine | undefined {
  if (!text.startsWith('{"kind":')) return undefined;
  try {
    return JSON.parse(text) as TestLine;
  } catch {
    return undefined;
  }
}
