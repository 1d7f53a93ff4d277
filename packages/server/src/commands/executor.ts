/**
 * How a command reaches the database: statements with a name, which PostgreSQL parses and plans once a connection.
 * Owns which commands' transactions are kept, and running them again when a concurrent one won; knows no table.
 */
import type pg from 'pg';
import { isRetryable } from '../store/failure.ts';
import { inTransaction } from '../store/transaction.ts';
import type { Outcome } from './outcome.ts';

/** `name` is unique per text: the driver keeps one prepared statement a name and connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A statement that stands alone is its own transaction. */
export interface Executor {
  /** False: each statement commits by itself. */
  readonly inTransaction: boolean;
  /** For the store's own functions. */
  readonly client: Pick<pg.Pool | pg.PoolClient, 'query'>;
  rows<R extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<R[]>;
}

export function executorOf(client: Pick<pg.Pool | pg.PoolClient, 'query'>, inTransaction = false): Executor {
  return {
    inTransaction,
    client,
    async rows<R extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<R[]> {
      const result = await client.query<R>({ name: statement.name, text: statement.text, values: values as unknown[] });
      return result.rows;
    },
  };
}

const attempts = 5;

/**
 * Runs `work` in one transaction, committed when its outcome is good and rolled back otherwise. After a deadlock or a
 * serialisation failure it runs again from the start. Throws what the driver throws.
 */
export async function transact<T>(
  pool: pg.Pool,
  work: (executor: Executor) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await inTransaction(
        pool,
        (client) => work(executorOf(client, true)),
        ({ ok }) => ok,
      );
    } catch (error) {
      if (attempt === attempts || !isRetryable(error)) throw error;
    }
  }
}
