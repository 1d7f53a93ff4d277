/**
 * Owns the keys of this machine's own router and detector: in the database as hashes, in their state directories as text. A key
 * that still fits is kept, so that an edge or a detector that runs on is not locked out by a control plane that starts again.
 * Which are our own is written in the data directory: several installations may share a database.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { keyFileName as detectorKeyFileName } from '@levee/detector/config.ts';
import { keyFileName, writeKey } from '@levee/edge/sync/enroll.ts';
import type { Database } from '@levee/server/store/database.ts';
import { ensureLocalDetector } from '@levee/server/store/detectors.ts';
import { newUuid } from '@levee/server/store/new-uuid.ts';
import { ensureLocalRouter } from '@levee/server/store/routers.ts';

const routerFileName = 'local-router.uuid';
const detectorFileName = 'local-detector.uuid';
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True when the key in the state directory was replaced. Throws what the driver and the file system throw. */
export async function leaveRouterKey(
  database: Database,
  stateDirectory: string,
  dataDirectory: string,
  hostName = hostname(),
): Promise<boolean> {
  const uuidFile = join(dataDirectory, routerFileName);
  const { uuid, made } = ownUuid(uuidFile);
  const presentKey = readIfThere(join(stateDirectory, keyFileName));
  const { routerUuid, key, fresh } = await ensureLocalRouter(database.pool, { uuid, hostName, presentKey });
  if (made && routerUuid !== uuid) keep(uuidFile, routerUuid);
  if (fresh) writeKey(stateDirectory, key);
  return fresh;
}

/** The same of the detector. */
export async function leaveDetectorKey(
  database: Database,
  stateDirectory: string,
  dataDirectory: string,
  hostName = hostname(),
): Promise<boolean> {
  const uuidFile = join(dataDirectory, detectorFileName);
  const { uuid, made } = ownUuid(uuidFile);
  const keyFile = join(stateDirectory, detectorKeyFileName);
  const presentKey = readIfThere(keyFile);
  const { detectorUuid, key, fresh } = await ensureLocalDetector(database.pool, { uuid, hostName, presentKey });
  if (made && detectorUuid !== uuid) keep(uuidFile, detectorUuid);
  if (fresh) {
    mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
    keep(keyFile, key);
  }
  return fresh;
}

/** Made, and written before anything has it: a start that is cut short finds it again. */
function ownUuid(uuidFile: string): { readonly uuid: string; readonly made: boolean } {
  const written = readIfThere(uuidFile);
  if (written !== undefined && uuidText.test(written)) return { uuid: written, made: false };
  const uuid = newUuid();
  keep(uuidFile, uuid);
  return { uuid, made: true };
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
