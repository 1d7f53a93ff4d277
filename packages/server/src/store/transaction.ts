/**
 * Owns how a transaction begins and ends, on a connection that is at hand or on one of a pool. Decides nothing about
 * running it again, and a connection whose state is not known never goes back to its pool.
 */
import type pg from 'pg';
import { isUnanswered, OutcomeUnknown } from './failure.ts';

/** For work that always commits when it does not throw. */
const ALWAYS = () => true;

/**
 * Runs `work` in one transaction on a connection of the pool. Commits what it returns when `keeps` says so, rolls back
 * otherwise and when it throws. Throws what `work` or the driver throws, and OutcomeUnknown when the commit was not answered.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  keeps: (result: T) => boolean = ALWAYS,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await run(
      client,
      () => work(client),
      keeps,
      (failed) => {
        broken = failed;
      },
    );
  } finally {
    client.release(broken);
  }
}

/** The same on a connection that the caller opened, and ends whatever happens. */
export function inTransactionOn<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  return run(client, work, ALWAYS, () => {});
}

async function run<T>(
  client: pg.ClientBase,
  work: () => Promise<T>,
  keeps: (result: T) => boolean,
  onBroken: (failed: Error) => void,
): Promise<T> {
  try {
    await client.query('begin');
    const result = await work();
    if (keeps(result)) await commit(client);
    else await client.query('rollback');
    return result;
  } catch (error) {
    // Behind a statement that is not answered a rollback would only wait as long again; the connection's end is one.
    if (isUnanswered(error)) onBroken(error as Error);
    else await client.query('rollback').catch(onBroken);
    throw error;
  }
}

async function commit(client: pg.ClientBase): Promise<void> {
  try {
    await client.query('commit');
  } catch (error) {
    throw isUnanswered(error) ? new OutcomeUnknown(error) : error;
  }
}
