/** Which API keys still open what they opened: a stream that goes on must end when its key does. */
import type pg from 'pg';

/** Of the given keys those that are neither revoked nor expired, and whose account is there. */
export async function liveKeys(db: Pick<pg.Pool, 'query'>, keyUuids: readonly string[]): Promise<ReadonlySet<string>> {
  if (keyUuids.length === 0) return new Set();
  const { rows } = await db.query<{ uuid: string }>({
    name: 'api_keys_live',
    text: `select k.uuid::text as uuid from api_key k join account a on a.uuid = k.account_uuid
      where k.uuid = any($1::uuid[]) and k.revoked_at is null and a.deletion_marked_at is null
        and (k.expires_at is null or k.expires_at > now())`,
    values: [keyUuids],
  });
  return new Set(rows.map(({ uuid }) => uuid));
}
