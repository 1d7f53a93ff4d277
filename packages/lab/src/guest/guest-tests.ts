/**
 * Runs a file of tests (node:test) in a guest and shows each of its tests as one of this run. Owns the translation: a
 * guest that ends early, or tells of no test, fails.
 */
import assert from 'node:assert/strict';
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
  readonly deadlineMilliseconds: number;
}

const ownNode = process.execPath;

export async function runTestsInGuest(context: TestContext, tests: GuestTests): Promise<void> {
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
    environment: { LEVEE_IN_GUEST: '1', NODE_COMPILE_CACHE: '/tmp/compiled' },
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

function readLine(text: string): TestLine | undefined {
  if (!text.startsWith('{"kind":')) return undefined;
  try {
    return JSON.parse(text) as TestLine;
  } catch {
    return undefined;
  }
}
