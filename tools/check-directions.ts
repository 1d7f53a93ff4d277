/**
 * Owns holding the repository's sources to `directions.ts`: reads them, prints each violation as `file:line message`,
 * exits 1 when there is one.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findViolations, type Tree } from './directions.ts';

export function readTree(root: string): Tree {
  const sources = new Map<string, string>();
  const patterns = ['packages/*/src/**/*.ts', 'e2e/**/*.ts', 'bench/**/*.ts', 'tools/**/*.ts'];
  for (const file of globSync(patterns, { cwd: root, exclude: (name) => name === 'node_modules' })) {
    sources.set(file.replaceAll('\\', '/'), readFileSync(join(root, file), 'utf8'));
  }
  const declared = new Map<string, ReadonlySet<string>>();
  for (const folder of ['', ...globSync('packages/*', { cwd: root })]) {
    const path = join(root, folder, 'package.json');
    if (!existsSync(path)) continue;
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string> | undefined>;
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    declared.set(folder, new Set(Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })));
  }
  return { sources, declared };
}

if (import.meta.main) {
  const violations = findViolations(readTree(join(import.meta.dirname, '..')));
  for (const { file, line, message } of violations) console.log(`${file}:${line} ${message}`);
  if (violations.length > 0) process.exitCode = 1;
}
