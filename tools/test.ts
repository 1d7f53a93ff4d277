/**
 * Owns how the suites run: which files, in which order, how many at once, and the one summary at the end.
 * Must never decide that a test is unimportant: what was left out is named, and fails a run with CI=true.
 *
 * tools/test.ts [--long] [--only=pattern] [path or part of a path …] [--any-node-option …]
 */
import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

type Run = ReturnType<typeof run>;
interface Counts {
  tests: number;
  suites: number;
  passed: number;
  failed: number;
  cancelled: number;
  skipped: number;
  todo: number;
}

const root = join(import.meta.dirname, '..');
const args = process.argv.slice(2);
const long = args.includes('--long');
const names = args.filter((arg) => arg.startsWith('--only=')).map((arg) => arg.slice('--only='.length));
const nodeOptions = args.filter((arg) => arg.startsWith('--') && arg !== '--long' && !arg.startsWith('--only='));
const wanted = args.filter((arg) => !arg.startsWith('--'));

const suffix = long ? 'long' : 'test';
const files = globSync([`packages/**/*.${suffix}.ts`, `tools/**/*.${suffix}.ts`, `e2e/**/*.${suffix}.ts`], {
  cwd: root,
  exclude: (name) => name === 'node_modules',
})
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(relative(root, join(root, part)))))
  .sort();
if (files.length === 0) {
  console.error(`no *.${suffix}.ts file matches ${wanted.join(' ') || 'at all'}`);
  process.exit(1);
}

// Suites under e2e/ measure rates and latencies of the whole machine: each runs alone, after the others. Not so these, whose
// processes wait for each other most of the time.
const waiting =
  /^e2e\/(?:bgp\/|scale-out|hung-replica|detector|mitigation|attack-evidence|reports-are-taken|examples|given-interface)/;
const runsAlone = (file: string) => file.startsWith('e2e/') && !waiting.test(file);
const groups = [
  { files: files.filter((file) => !runsAlone(file)), concurrency: 2 },
  { files: files.filter(runsAlone), concurrency: 1 },
].filter((group) => group.files.length > 0);

const total: Counts = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 };
const leftOut: string[] = [];
const durations: { file: string; seconds: number }[] = [];
const abort = new AbortController();
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, () => abort.abort());
// A file whose process never ends is not caught by the limit on each test.
setTimeout(() => abort.abort(), (long ? 12 * 60 : 75) * 60_000).unref();
const startedAt = performance.now();

const report = Readable.from(events()).compose(spec as never) as Readable;
for await (const chunk of report) process.stdout.write(chunk as Buffer);

for (const name of leftOut) console.log(`left out: ${name}`);
const missing = process.env.LEVEE_TEST_MISSING;
if (missing) console.log(`left out: what needs the Debian packages ${missing}`);
const slow = durations.sort((a, b) => b.seconds - a.seconds).slice(0, 5);
console.log(`slowest: ${slow.map((entry) => `${entry.file} ${entry.seconds.toFixed(1)} s`).join(', ')}`);
const failed = total.failed + total.cancelled;
const incomplete = leftOut.length > 0 || Boolean(missing);
console.log(`${total.passed} passed, ${failed} failed, ${total.skipped} left out`);
if (failed > 0 || total.tests === 0) process.exitCode = 1;
else if (incomplete && process.env.CI === 'true') {
  console.log('CI=true: a run that leaves tests out does not count as passed');
  process.exitCode = 1;
}

/** All groups as one stream of events, so that the reporter prints its list of failures and its summary once. */
async function* events(): AsyncGenerator {
  for (const group of groups) {
    const stream = run({
      cwd: root,
      files: group.files.map((file) => join(root, file)),
      concurrency: group.concurrency,
      timeout: (long ? 120 : 5) * 60_000,
      // Not --test-force-exit: it ends a file's process before all of its results have left the pipe, and what is lost
      // is neither passed nor failed. A file that something left open keeps from ending fails by the limit.
      execArgv: nodeOptions,
      signal: abort.signal,
      ...(names.length > 0 ? { testNamePatterns: names } : {}),
    });
    yield* withoutSummary(stream);
  }
  const { passed: pass, failed: fail, tests, suites, cancelled, skipped, todo } = total;
  const milliseconds = Math.round(performance.now() - startedAt);
  const lines = { tests, suites, pass, fail, cancelled, skipped, todo, duration_ms: milliseconds };
  for (const [name, value] of Object.entries(lines)) {
    yield { type: 'test:diagnostic', data: { nesting: 0, message: `${name} ${value}`, level: 'info' } };
  }
}

async function* withoutSummary(stream: Run): AsyncGenerator {
  const summaryLine = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
  for await (const event of stream as unknown as AsyncIterable<{ type: string; data: Record<string, unknown> }>) {
    const { type, data } = event;
    if (type === 'test:summary') {
      const { file, counts, duration_ms: duration } = data as { file?: string; counts: Counts; duration_ms: number };
      if (file !== undefined) durations.push({ file: relative(root, file), seconds: duration / 1000 });
      else for (const key of Object.keys(total) as (keyof Counts)[]) total[key] += counts[key] ?? 0;
      continue;
    }
    if (type === 'test:diagnostic' && data.nesting === 0 && summaryLine.test(String(data.message))) continue;
    if ((type === 'test:pass' || type === 'test:fail') && data.skip !== undefined) {
      const why = typeof data.skip === 'string' && data.skip !== '' ? ` (${data.skip})` : '';
      leftOut.push(`${relative(root, String(data.file ?? ''))}: ${data.name}${why}`);
    }
    yield event;
  }
}
