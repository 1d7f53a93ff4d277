/** Owns where a detector's key is read from, and what the operator is told when there is none. */
import { readFileSync } from 'node:fs';

/** Throws an Error with a sentence for the operator. */
export function readKey(path: string): string {
  try {
    const key = readFileSync(path, 'utf8').trim();
    if (key !== '') return key;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `the detector's key cannot be read from ${path} (${code}); announce it: POST /v1/operator/detector`,
    );
  }
  throw new Error(`${path} holds no detector key; announce it: POST /v1/operator/detector`);
}
