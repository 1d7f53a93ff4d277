/**
 * Brings a database to the schema of this code: plain numbered SQL files, each in a transaction of its own with its
 * row in `migration`. Never alters an applied file's effect: a file whose checksum changed is refused, and so is a
 * database that knows files which this code does not.
 *
 * Any number of replicas may call it at once: every step takes the same advisory lock and looks again.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import type { Database } from './database.ts';
import { inTransactionOn } from './transaction.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the file, hex. */
  readonly checksum: string;
}

export type MigrationResult =
  | { readonly ok: true; readonly applied: readonly string[] }
  | { readonly ok: false; readonly code: 'database_too_new' | 'migration_changed'; readonly message: string };

const FOLDER = join(import.meta.dirname, 'migrations');
/** Any fixed number that nobody else in the database uses: the first eight digits of SHA-256("levee migrations"). */
const LOCK = Number.parseInt(createHash('sha256').update('levee migrations').digest('hex').slice(0, 8), 16);

const HISTORY = `create table if not exists migration (
  number integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp(),
  constraint migration_pkey primary key (number)
)`;

/** The migrations of a folder, by number; numbers start at 1 and have no gaps (a gap is a bug and throws). */
export function loadMigrations(folder: string = FOLDER): readonly Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort();
  return files.map((name, index) => {
    const number = Number(name.slice(0, name.indexOf('_')));
    if (number !== index + 1) throw new Error(`migration ${name}: expected number ${index + 1}`);
    const sql = readFileSync(join(folder, name), 'utf8');
    return { number, name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
  });
}

/** Throws what the driver throws when the database is away or a file fails; a failed file leaves nothing behind. */
export async function migrate(
  database: Pick<Database, 'connect'>,
  migrations: readonly Migration[] = loadMigrations(),
): Promise<MigrationResult> {
  const client = await database.connect('levee migrate');
  try {
    const applied: string[] = [];
    for (;;) {
      const step = await applyNext(client, migrations);
      if ('result' in step) return step.result ?? { ok: true, applied };
      applied.push(step.applied);
    }
  } finally {
    await client.end();
  }
}

type Step = { readonly applied: string } | { readonly result: (MigrationResult & { ok: false }) | undefined };

function applyNext(client: pg.Client, migrations: readonly Migration[]): Promise<Step> {
  return inTransactionOn(client, async () => {
    // A transaction's lock, not a session's: it also works behind a pooler that shares connections.
    await client.query('select pg_advisory_xact_lock($1)', [LOCK]);
    await client.query(HISTORY);
    const { rows } = await client.query<{ number: number; name: string; checksum: string }>(
      'select number, name, checksum from migration order by number',
    );
    const refused = refusal(rows, migrations);
    const next = migrations[rows.length];
    if (refused !== undefined || next === undefined) return { result: refused };
    await client.query(next.sql);
    await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
      next.number,
      next.name,
      next.checksum,
    ]);
    return { applied: next.name };
  });
}

function refusal(
  rows: readonly { number: number; name: string; checksum: string }[],
  migrations: readonly Migration[],
): (MigrationResult & { ok: false }) | undefined {
  for (const row of rows) {
    const known = migrations[row.number - 1];
    if (known === undefined) {
      return {
        ok: false,
        code: 'database_too_new',
        message: `the database holds migration ${row.name}, which this version of Levee does not know: start the newer version`,
      };
    }
    if (known.checksum !== row.checksum) {
      return {
        ok: false,
        code: 'migration_changed',
        message: `migration ${known.name} differs from the one applied to this database: never edit an applied migration, add a new one`,
      };
    }
  }
  return undefined;
}
