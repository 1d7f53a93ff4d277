/**
 * Detectors as rows: announcing, listing, knowing by key, removing. A key leaves this file once, as text, to whoever asked;
 * the database only ever holds its SHA-256.
 */
import { randomBytes } from 'node:crypto';
import { KEY_RANDOM_BYTES, makeKey, parseKeyRole } from '@levee/core/account/key.ts';
import type pg from 'pg';
import type { Statements } from './change-log.ts';
import { newUuid } from './new-uuid.ts';
import { LOCAL_NAME, localNames, secretHash } from './routers.ts';

export interface DetectorRow {
  readonly uuid: string;
  readonly name: string;
  readonly created_at: Date;
  readonly last_seen_at: Date | null;
  /** As its last report had it, in the wire's form. */
  readonly status: Readonly<Record<string, unknown>> | null;
}

const run = <R extends pg.QueryResultRow>(db: Statements, text: string, values: unknown[] = []) =>
  (db as pg.ClientBase).query<R>(text, values).then((result) => result.rows);

const COLUMNS = 'd.uuid::text as uuid, d.name, d.created_at, d.last_seen_at, d.status';
/** Of the rows `own`. */
const LOGGED = `insert into change (kind, object_uuid) select 'detector', uuid from own`;

export function listDetectors(db: Statements): Promise<DetectorRow[]> {
  return run<DetectorRow>(db, `select ${COLUMNS} from detector d order by d.created_at, d.uuid`);
}

export async function readDetector(db: Statements, uuid: string): Promise<DetectorRow | undefined> {
  return (await run<DetectorRow>(db, `select ${COLUMNS} from detector d where d.uuid = $1`, [uuid]))[0];
}

/** A name that is taken violates `detector_name`. */
export async function createDetector(
  db: Statements,
  name: string,
): Promise<{ readonly detector: DetectorRow; readonly key: string }> {
  const key = makeKey('detector', randomBytes(KEY_RANDOM_BYTES));
  const [detector] = await run<DetectorRow>(
    db,
    `with own as (insert into detector (uuid, name, key_hash) values ($1, $2, $3) returning *), logged as (${LOGGED})
      select ${COLUMNS} from own d`,
    [newUuid(), name, secretHash(key)],
  );
  if (detector === undefined) throw new Error('insert into detector returned nothing');
  return { detector, key };
}

/** Undefined: there is none. What it told of exporters goes with it; attacks that it found stay. */
export async function removeDetector(db: Statements, uuid: string): Promise<DetectorRow | undefined> {
  const [gone] = await run<DetectorRow>(
    db,
    `with own as (delete from detector where uuid = $1 returning *), logged as (${LOGGED})
      select ${COLUMNS} from own d`,
    [uuid],
  );
  return gone;
}

export interface KnownDetector {
  readonly uuid: string;
  readonly name: string;
}

/** `keyHash`: hex. */
export async function detectorByKey(db: Statements, keyHash: string): Promise<KnownDetector | undefined> {
  const { rows } = await (db as pg.ClientBase).query<KnownDetector>({
    name: 'detector_by_key',
    text: `select uuid::text as uuid, name from detector where key_hash = decode($1, 'hex')`,
    values: [keyHash],
  });
  return rows[0];
}

/** For the audit log, of the rows `own`. */
const ENROLLED = `told as (
    insert into audit (operation, kind, object_uuid, after)
    select 'enrol', 'detector', uuid, json_build_object('name', name) from own
  )`;

/**
 * The detector of this machine, made when absent. `uuid` is kept in the installation's data directory: by it, and never by
 * its name, it is known as our own. `presentKey` is kept when it still is a detector's key; otherwise a fresh one replaces
 * what the detector of that uuid had.
 */
export async function ensureLocalDetector(
  db: Statements,
  {
    uuid,
    hostName,
    presentKey,
  }: { readonly uuid: string; readonly hostName: string; readonly presentKey?: string | undefined },
): Promise<{ readonly detectorUuid: string; readonly key: string; readonly fresh: boolean }> {
  if (presentKey !== undefined && parseKeyRole(presentKey) === 'detector') {
    const kept = await detectorByKey(db, secretHash(presentKey).toString('hex'));
    if (kept !== undefined) return { detectorUuid: kept.uuid, key: presentKey, fresh: false };
  }
  const key = makeKey('detector', randomBytes(KEY_RANDOM_BYTES));
  const rekeyed = await run(
    db,
    `with own as (update detector set key_hash = $2 where uuid = $1 returning uuid, name),
      logged as (${LOGGED}), ${ENROLLED} select 1 from own`,
    [uuid, secretHash(key)],
  );
  if (rekeyed.length > 0) return { detectorUuid: uuid, key, fresh: true };
  for (const name of localNames(uuid, hostName)) {
    const made = await run(
      db,
      `with own as (
          insert into detector (uuid, name, key_hash) values ($1, $2, $3) on conflict do nothing returning uuid, name
        ), logged as (${LOGGED}), ${ENROLLED} select 1 from own`,
      [uuid, name, secretHash(key)],
    );
    if (made.length > 0) return { detectorUuid: uuid, key, fresh: true };
  }
  throw new Error(`the detector ${LOCAL_NAME} was neither found nor made`);
}
