/**
 * Owns `npm run check`: the list of steps that sources must pass without being run. Each step prints one line with its
 * time; what failed is printed in full at the end. Must never change a file.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findLeaks } from './leaks.ts';

type Outcome = { ok: true; leftOut?: string } | { ok: false; output: string };

const root = join(import.meta.dirname, '..');
const bin = (name: string) => join(root, 'node_modules', '.bin', name);

const description = join('packages', 'contract', 'generated', 'openapi.json');
/** The linter asks its maker for a newer version, and tells it of the run, unless told not to. */
const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' };

const steps: [string, () => Outcome][] = [
  ['format and lint', () => program(bin('biome'), ['check', '--error-on-warnings', '--colors=off', '.'])],
  ['types', () => program(bin('tsc'), ['-p', '.', '--pretty', 'false'])],
  ['directions', () => program(process.execPath, ['tools/check-directions.ts'])],
  ['generated files fresh', () => program(process.execPath, ['tools/generate.ts', '--check'])],
  ['description linted', () => program(bin('redocly'), ['lint', '--format=stylish', description], quiet)],
  ['no leaks', leaks],
  ['npm audit (runtime)', audit],
];

const failures: { name: string; output: string }[] = [];
for (const [name, step] of steps) {
  const startedAt = performance.now();
  const outcome = step();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const note = outcome.ok && outcome.leftOut ? `  ${outcome.leftOut}` : '';
  const word = outcome.ok ? (outcome.leftOut ? 'left out' : 'ok') : 'FAILED';
  console.log(`${word.padEnd(8)}  ${name.padEnd(22)} ${seconds.padStart(5)} s${note}`);
  if (!outcome.ok) failures.push({ name, output: outcome.output });
}
for (const { name, output } of failures) console.log(`\n── ${name} ──\n${output.trimEnd()}`);
console.log(failures.length === 0 ? 'check passed' : `\ncheck failed: ${failures.map(({ name }) => name).join(', ')}`);
process.exitCode = failures.length === 0 ? 0 : 1;

function start(file: string, args: readonly string[], environment: object = {}): SpawnSyncReturns<string> {
  return spawnSync(file, args, {
    cwd: root,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 10 * 60_000,
  });
}

function program(file: string, args: readonly string[], environment: object = {}): Outcome {
  const result = start(file, args, environment);
  if (result.error) return { ok: false, output: `${file}: ${result.error.message}` };
  return result.status === 0 ? { ok: true } : { ok: false, output: result.stdout + result.stderr };
}

function leaks(): Outcome {
  const found = findLeaks(root);
  return found.length === 0 ? { ok: true } : { ok: false, output: found.join('\n') };
}

/** A registry that cannot be asked is said, not failed: a check must work on a plane. Findings fail. */
function audit(): Outcome {
  const result = start('npm', ['audit', '--omit=dev', '--json']);
  let report: { metadata?: { vulnerabilities?: { total?: number } }; error?: { summary?: string }; message?: string };
  try {
    report = JSON.parse(result.stdout);
  } catch {
    return {
      ok: true,
      leftOut: `not asked: npm answered nothing readable (${result.error?.message ?? result.status})`,
    };
  }
  const total = report.metadata?.vulnerabilities?.total;
  if (total === undefined) {
    const why = (report.error?.summary || report.message || 'no reason given').split('\n')[0];
    return { ok: true, leftOut: `not asked: the registry gave no answer (${why})` };
  }
  if (total === 0) return { ok: true };
  return { ok: false, output: start('npm', ['audit', '--omit=dev']).stdout };
}
