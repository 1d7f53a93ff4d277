/**
 * Owns the list of checked-in files that are made from other sources: writes them, or with `--check` says which are
 * stale and exits 1. Each is rendered by a pure function beside its source; add a line to `generated` for a new one.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { renderConfigurationPage } from '../packages/cli/src/config/document.ts';
import { renderOpenapiFile } from '../packages/contract/src/openapi-file.ts';
import { renderDecisionIndex } from './decision-index.ts';

const root = join(import.meta.dirname, '..');

/** Path in the repository → its whole text. */
const generated: Readonly<Record<string, () => string>> = {
  'docs/configuration.md': renderConfigurationPage,
  'docs/decisions/README.md': () => renderDecisionIndex(join(root, 'docs', 'decisions')),
  'packages/contract/generated/openapi.json': renderOpenapiFile,
};

const check = process.argv.includes('--check');

for (const [file, render] of Object.entries(generated)) {
  const path = join(root, file);
  const text = render();
  if (readText(path) === text) continue;
  if (check) {
    console.log(`${file} is stale: run \`npm run generate\``);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`wrote ${file}`);
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
