/** Owns the version that Levee says it has: the repository's, read once. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8')) as {
  version: string;
};

export const version: string = manifest.version;
