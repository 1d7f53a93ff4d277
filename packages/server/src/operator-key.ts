/**
 * The first operator key of an installation: given, or made here and kept in `operator.key` in the data directory for
 * whoever started it. Written before the database knows it, so that a crash in between loses no key: the next start
 * finds the file and uses it.
 */
import { randomBytes } from 'node:crypto';
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KEY_RANDOM_BYTES, makeKey, parseKeyRole } from '@levee/core/account/key.ts';
import type pg from 'pg';
import { transact } from './commands/executor.ts';
import { createFirstOperator } from './commands/first-operator.ts';
import { done } from './commands/outcome.ts';
import { keyHash } from './http/key-hash.ts';
import { newUuid } from './store/new-uuid.ts';

export type OperatorKey =
  /** The key is there at the one start that made it. */
  { readonly ok: true; readonly made: string | undefined } | { readonly ok: false; readonly message: string };

/** Throws what the driver and the file system throw. */
export async function ensureOperator(
  pool: pg.Pool,
  dataDirectory: string,
  given: string | undefined,
): Promise<OperatorKey> {
  if (given !== undefined && !/^[\x21-\x7e]{32,128}$/.test(given)) {
    return { ok: false, message: 'the operator key must have 32 to 128 visible ASCII characters' };
  }
  if (await hasOperator(pool)) return { ok: true, made: undefined };
  const file = join(dataDirectory, 'operator.key');
  const kept = given === undefined ? await keptKey(file) : undefined;
  const key = given ?? kept ?? makeKey('operator', randomBytes(KEY_RANDOM_BYTES));
  if (given === undefined && kept === undefined) await writeKey(file, key);
  const hash = keyHash(key);
  const created = await transact(pool, async (executor) =>
    done(await createFirstOperator(executor, { accountUuid: newUuid(), keyUuid: newUuid(), hash })),
  );
  if (created.ok && created.value) return { ok: true, made: key };
  // Another replica was first: this key opens nothing.
  if (given === undefined && kept === undefined) await rm(file, { force: true });
  return { ok: true, made: undefined };
}

async function hasOperator(pool: pg.Pool): Promise<boolean> {
  const { rowCount } = await pool.query(`select from account where role = 'operator' limit 1`);
  return rowCount === 1;
}

async function keptKey(file: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, 'utf8')).trim();
    return parseKeyRole(text) === 'operator' ? text : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeKey(file: string, key: string): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${key}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, file);
}
