/**
 * Runs a part of a transaction that may fail without costing the rest: what it wrote is undone, and what came before stays.
 * Never swallows what the whole transaction has to answer for: a database that is away, or a concurrent one that won.
 */
import { isRetryable, isUnanswered, isUnavailable } from '../store/failure.ts';
import type { Executor } from './executor.ts';

const begin = { name: 'undone_alone_begin', text: 'savepoint undone_alone' };
const undo = { name: 'undone_alone_undo', text: 'rollback to savepoint undone_alone' };

/** In a transaction. Returns what it failed with; undefined: it did not. */
export async function undoneAlone(executor: Executor, work: () => Promise<unknown>): Promise<Error | undefined> {
  if (!executor.inTransaction) throw new Error('a part of a transaction runs outside of one');
  await executor.rows(begin, []);
  try {
    await work();
    return undefined;
  } catch (error) {
    if (isUnavailable(error) || isRetryable(error) || isUnanswered(error)) throw error;
    await executor.rows(undo, []);
    return error instanceof Error ? error : new Error(String(error));
  }
}
