/**
 * Owns the key of this machine's own router: in the database as a hash, in the edge's state directory as text. A key
 * that still fits is kept, so that an edge that runs on is not locked out by a control plane that starts again. Which
 * router is our own is written in the data directory: several installations may share a database.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { keyFileName, writeKey } from '@levee/edge/sync/enroll.ts';
import type { Database } from '@levee/server/store/database.ts';
import { newUuid } from '@levee/server/store/new-uuid.ts';
import { ensureLocalRouter } from '@levee/server/store/routers.ts';

const uuidFileName = 'local-router.uuid';
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True when the key in the state directory was replaced. Throws what the driver and the file system throw. */
export async function leaveRouterKey(
  database: Database,
  stateDirectory: string,
  dataDirectory: string,
  hostName = hostname(),
): Promise<boolean> {
  const uuidFile = join(dataDirectory, uuidFileName);
  const written = readIfThere(uuidFile);
  const known = written !== undefined && uuidText.test(written) ? written : undefined;
  const uuid = known ?? newUuid();
  // Before the router is made: a start that is cut short finds it again.
  if (known === undefined) keep(uuidFile, uuid);
  const presentKey = readIfThere(join(stateDirectory, keyFileName));
  const { routerUuid, key, fresh } = await ensureLocalRouter(database.pool, { uuid, hostName, presentKey });
  if (known === undefined && routerUuid !== uuid) keep(uuidFile, routerUuid);
  if (fresh) writeKey(stateDirectory, key);
  return fresh;
}

/** Whole or not at all. */
function keep(file: string, text: string): void {
  writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
