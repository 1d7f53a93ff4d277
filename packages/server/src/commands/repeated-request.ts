/**
 * Remembers, in the command's own transaction, that a request under an Idempotency-Key was carried out and what was
 * answered. The row's key decides between requests at the same time: the second waits for the first to commit or roll
 * back, and then finds its answer or takes its place. The answer comes and goes sealed; nothing here can read it.
 */
import type { Executor } from './executor.ts';

const claimStatement = {
  name: 'idempotency_claim',
  text: `insert into idempotency (key_uuid, key, request_hash, answer) values ($1, $2, $3, '')
    on conflict (key_uuid, key) do update
      set request_hash = excluded.request_hash, answer = '', created_at = now()
      where idempotency.created_at < now() - interval '24 hours'
    returning true as claimed`,
};

const readStatement = {
  name: 'idempotency_read',
  text: 'select request_hash, answer from idempotency where key_uuid = $1 and key = $2',
};

const keepStatement = {
  name: 'idempotency_keep',
  text: 'update idempotency set answer = $3 where key_uuid = $1 and key = $2',
};

export interface RequestName {
  readonly keyUuid: string;
  readonly key: string;
  /** Of what was asked; 32 bytes that say nothing without the caller's key. */
  readonly mark: Buffer;
}

export type Claim =
  | { readonly kind: 'first' }
  | { readonly kind: 'repeated'; readonly answer: Buffer }
  /** The same Idempotency-Key with another request. */
  | { readonly kind: 'other' };

export async function claimRequest(executor: Executor, name: RequestName): Promise<Claim> {
  const claimed = await executor.rows(claimStatement, [name.keyUuid, name.key, name.mark]);
  if (claimed.length > 0) return { kind: 'first' };
  const [row] = await executor.rows<{ request_hash: Buffer; answer: Buffer }>(readStatement, [name.keyUuid, name.key]);
  // Swept between the two statements: without a row the answer could not be kept, so claim anew.
  if (row === undefined) return claimRequest(executor, name);
  return row.request_hash.equals(name.mark) ? { kind: 'repeated', answer: row.answer } : { kind: 'other' };
}

export async function keepAnswer(executor: Executor, name: RequestName, sealed: Buffer): Promise<void> {
  await executor.rows(keepStatement, [name.keyUuid, name.key, sealed]);
}
