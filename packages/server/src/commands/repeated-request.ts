/**
 * Remembers, in the command's own transaction, that a request under an Idempotency-Key was carried out and what was
 * answered; and afterwards the final answer, where the first one waits. The row's key decides between requests at the same time: the second waits for the first to commit or roll
 * back, and then finds its answer or takes its place. The answer comes and goes sealed; nothing here can read it.
 */
import type { Executor } from './executor.ts';

const claimStatement = {
  name: 'idempotency_claim',
  text: `insert into idempotency (key_uuid, key, request_hash, answer) values ($1, $2, $3, '')
    on conflict (key_uuid, key) do update
      set request_hash = excluded.request_hash, answer = '', created_at = now(), final_by = null
      where idempotency.created_at < now() - interval '24 hours'
    returning true as claimed`,
};

const readStatement = {
  name: 'idempotency_read',
  text: `select request_hash, answer, coalesce(final_by <= now(), true) as final from idempotency
    where key_uuid = $1 and key = $2`,
};

const keepStatement = {
  name: 'idempotency_keep',
  text: `update idempotency set answer = $3, final_by = now() + make_interval(secs => $4)
    where key_uuid = $1 and key = $2 and request_hash = $5`,
};

export interface RequestName {
  readonly keyUuid: string;
  readonly key: string;
  /** Of what was asked; 32 bytes that say nothing without the caller's key. */
  readonly mark: Buffer;
}

export interface KeptAnswer {
  /** Sealed. */
  readonly answer: Buffer;
  /** False: the first request is still waited for, so that another answer may follow. */
  readonly isFinal: boolean;
}

export type Claim =
  | { readonly kind: 'first' }
  | { readonly kind: 'repeated'; readonly kept: KeptAnswer }
  /** The same Idempotency-Key with another request. */
  | { readonly kind: 'other' };

export async function claimRequest(executor: Executor, name: RequestName): Promise<Claim> {
  const claimed = await executor.rows(claimStatement, [name.keyUuid, name.key, name.mark]);
  if (claimed.length > 0) return { kind: 'first' };
  const row = await readRow(executor, name);
  // Swept between the two statements: without a row the answer could not be kept, so claim anew.
  if (row === undefined) return claimRequest(executor, name);
  return row.request_hash.equals(name.mark) ? { kind: 'repeated', kept: keptOf(row) } : { kind: 'other' };
}

/** As it is now; undefined: forgotten. */
export async function readKept(executor: Executor, name: RequestName): Promise<KeptAnswer | undefined> {
  const row = await readRow(executor, name);
  return row?.request_hash.equals(name.mark) ? keptOf(row) : undefined;
}

/** `finalWithinSeconds`: undefined when this is the final answer. */
export async function keepAnswer(
  executor: Executor,
  name: RequestName,
  sealed: Buffer,
  finalWithinSeconds?: number,
): Promise<void> {
  await executor.rows(keepStatement, [name.keyUuid, name.key, sealed, finalWithinSeconds ?? null, name.mark]);
}

interface Row {
  readonly request_hash: Buffer;
  readonly answer: Buffer;
  readonly final: boolean;
}

async function readRow(executor: Executor, name: RequestName): Promise<Row | undefined> {
  const [row] = await executor.rows<Row>(readStatement, [name.keyUuid, name.key]);
  return row;
}

const keptOf = ({ answer, final }: Row): KeptAnswer => ({ answer, isFinal: final });
