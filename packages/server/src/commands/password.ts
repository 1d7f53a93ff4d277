/**
 * Passwords: which are refused as too common, and their argon2id hash (RFC 9106) at the
 * cost that OWASP's password storage sheet gives: 19 MiB, two passes, one lane. Never keeps or shows a password.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Problem } from '@levee/contract/errors.ts';
import { hash } from '@node-rs/argon2';

const file = readFileSync(join(import.meta.dirname, 'common-passwords.txt'), 'utf8');
const long = new Set(sectionOf('long'));
const words = new Set(sectionOf('word'));

function sectionOf(name: string): string[] {
  const start = file.indexOf(`\n[${name}]\n`) + name.length + 4;
  const end = file.indexOf('\n[', start);
  return file
    .slice(start, end < 0 ? undefined : end)
    .split('\n')
    .filter((line) => line !== '');
}

/**
 * Too common: on the list; one short piece again and again; a run along the alphabet or the digits; or one common
 * word with digits and signs before or after it, which is what twelve characters are most often reached with.
 */
export function isCommonPassword(password: string): boolean {
  const lower = password.toLowerCase();
  if (long.has(lower)) return true;
  if (isRepeated(lower) || isRun(lower)) return true;
  const bare = lower.replace(/^[^a-z]+|[^a-z]+$/g, '');
  return bare.length < 12 && (words.has(bare) || bare === '');
}

function isRepeated(text: string): boolean {
  for (let length = 1; length <= 6; length++) {
    const piece = text.slice(0, length);
    if (piece.repeat(Math.ceil(text.length / length)).startsWith(text)) return true;
  }
  // A common word twice or more, whatever its length.
  return [...words].some((word) => text.length > word.length && text.replaceAll(word, '') === '');
}

function isRun(text: string): boolean {
  const step = text.charCodeAt(1) - text.charCodeAt(0);
  if (step !== 1 && step !== -1) return false;
  for (let at = 1; at < text.length; at++) {
    const difference = text.charCodeAt(at) - text.charCodeAt(at - 1);
    // 9 is followed by 0 on the keyboard.
    if (difference !== step && difference !== -9 * step) return false;
  }
  return true;
}

/** The problem at `field` (a JSON pointer), or undefined. `others`: what the password must not be built from. */
export function passwordProblem(password: string, others: readonly string[], field: string): Problem | undefined {
  const name = field.slice(1);
  if (isCommonPassword(password)) {
    return { field, code: 'too_common', message: `${name}: is one of the commonly used passwords; choose another` };
  }
  const lower = password.toLowerCase();
  if (others.some((other) => other.length >= 3 && lower.replaceAll(other.toLowerCase(), '').length < 6)) {
    return { field, code: 'too_common', message: `${name}: must not be made of the username or the email address` };
  }
  return undefined;
}

/** PHC string. Takes some tens of milliseconds on a thread of its own. */
export function hashPassword(password: string): Promise<string> {
  // argon2id is the package's default.
  return hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 });
}
