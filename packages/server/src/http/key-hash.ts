/** What the database keeps of a key: its SHA-256. A key has far more entropy than a search could cover. */
import { hash } from 'node:crypto';

export function keyHash(keyText: string): Buffer {
  return hash('sha256', keyText, 'buffer');
}
