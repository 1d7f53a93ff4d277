/**
 * Looks up API keys by their hashes, many in one statement, and few statements at a time: so that whoever sends keys
 * without end, right in form as they may be, costs the database no more than that. Those who wait take turns by lanes,
 * so that one sender's keys never stand in front of another's. Decides nothing about a key.
 */
import type pg from 'pg';
import type { Caller } from '../commands/caller.ts';

export interface KeyRow {
  readonly uuid: string;
  readonly account_uuid: string;
  readonly read_only: boolean;
  readonly sources: readonly string[] | null;
  readonly operations: readonly string[] | null;
  readonly expires_at: Date | null;
  readonly rate_limit: number | null;
  readonly role: Caller['role'];
  readonly provider_uuid: string | null;
}

/** `digest`: SHA-256 in base64url. Undefined: there is no such key, or no more. Rejects with what the driver throws. */
export type KeyLookUp = (digest: string, lane: string) => Promise<KeyRow | undefined>;

interface Waiting {
  readonly digest: string;
  readonly resolve: (row: KeyRow | undefined) => void;
  readonly reject: (error: unknown) => void;
}

const statementsAtOnce = 2;
/** One that has no answer after this may never get any: it no longer holds up those behind it. */
const patienceMilliseconds = 1_000;
const keysAtOnce = 200;

const statement = {
  name: 'api_keys_by_hash',
  text: `select k.hash, k.uuid::text as uuid, k.account_uuid::text as account_uuid, k.read_only,
      k.sources::text[] as sources, k.operations, k.expires_at, k.rate_limit, a.role,
      a.provider_uuid::text as provider_uuid
    from api_key k join account a on a.uuid = k.account_uuid
    where k.hash = any($1::bytea[]) and k.revoked_at is null and a.deletion_marked_at is null`,
};

export function createKeyLookUp(pool: Pick<pg.Pool, 'query'>): KeyLookUp {
  const lanes = new Map<string, Waiting[]>();
  let underWay = 0;

  /** One of each lane in turn, until there are enough. */
  function next(): Waiting[] {
    const taken: Waiting[] = [];
    // A lane that goes to the end of the map is met again there.
    for (const [lane, waiting] of lanes) {
      lanes.delete(lane);
      const first = waiting.shift();
      if (first !== undefined) taken.push(first);
      if (waiting.length > 0) lanes.set(lane, waiting);
      if (taken.length === keysAtOnce) break;
    }
    return taken;
  }

  async function carryOut(taken: readonly Waiting[]): Promise<void> {
    try {
      const hashes = taken.map(({ digest }) => Buffer.from(digest, 'base64url'));
      const { rows } = await pool.query<KeyRow & { hash: Buffer }>({ ...statement, values: [hashes] });
      const found = new Map(rows.map((row) => [row.hash.toString('base64url'), row]));
      for (const { digest, resolve } of taken) resolve(found.get(digest));
    } catch (error) {
      for (const { reject } of taken) reject(error);
    }
  }

  function start(): void {
    while (underWay < statementsAtOnce && lanes.size > 0) {
      underWay++;
      let occupies = true;
      const leave = () => {
        if (!occupies) return;
        occupies = false;
        clearTimeout(timer);
        underWay--;
        start();
      };
      const timer = setTimeout(leave, patienceMilliseconds);
      void carryOut(next()).finally(leave);
    }
  }

  return (digest, lane) =>
    new Promise((resolve, reject) => {
      const waiting = lanes.get(lane);
      if (waiting === undefined) lanes.set(lane, [{ digest, resolve, reject }]);
      else waiting.push({ digest, resolve, reject });
      start();
    });
}
