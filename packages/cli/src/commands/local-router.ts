/**
 * Owns the key of this machine's own router: in the database as a hash, in the edge's state directory as text. A key
 * that still fits is kept, so that an edge that runs on is not locked out by a control plane that starts again.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyFileName, writeKey } from '@levee/edge/sync/enroll.ts';
import type { Database } from '@levee/server/store/database.ts';
import { ensureLocalRouter } from '@levee/server/store/routers.ts';

/** True when the key in the directory was replaced. Throws what the driver and the file system throw. */
export async function leaveRouterKey(database: Database, stateDirectory: string): Promise<boolean> {
  const file = join(stateDirectory, keyFileName);
  const { key, fresh } = await ensureLocalRouter(database.pool, readIfThere(file));
  if (fresh) writeKey(stateDirectory, key);
  return fresh;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
