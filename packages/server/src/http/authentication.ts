/**
 * From the x-api-key header to the caller. Keys that were looked up are trusted for a moment, so that a busy client
 * costs the database a look-up a moment and not one a request; the moment is short enough that a revoked key stops
 * everywhere within a second. A key with a wrong checksum never reaches the database, and a source that has tried too
 * many wrong ones is refused without a look, unless its key is one that was good before. Keeps hashes, never keys.
 */
import { hash } from 'node:crypto';
import type { BlockList } from 'node:net';
import { parseKeyRole } from '@levee/core/account/key.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import type pg from 'pg';
import type { Caller } from '../commands/caller.ts';
import type { Failure } from '../commands/outcome.ts';
import { addressList, isAmong } from './address-list.ts';
import type { Guesses } from './rate-limit.ts';

/** Revocation must be everywhere within 1 s; the rest of it is for a slow look-up. */
const trustedMilliseconds = 400;
/** Bounds memory under a flood of well-formed keys that do not exist. */
const remembered = 20_000;

const lookUp = {
  name: 'api_key_by_hash',
  text: `select k.uuid::text as uuid, k.account_uuid::text as account_uuid, k.read_only, k.sources::text[] as sources,
      k.operations, k.expires_at, k.rate_limit, a.role, a.provider_uuid::text as provider_uuid
    from api_key k join account a on a.uuid = k.account_uuid
    where k.hash = $1 and k.revoked_at is null and a.deletion_marked_at is null`,
};

interface KeyRow {
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

interface Known {
  readonly caller: Caller;
  readonly readOnly: boolean;
  readonly sources: BlockList | undefined;
}

interface Entry {
  until: number;
  known: Known | undefined;
}

export type Authenticated =
  | { readonly ok: true; readonly caller: Caller; readonly readOnly: boolean }
  /** `retrySeconds`: for Retry-After. */
  | { readonly ok: false; readonly failure: Failure; readonly retrySeconds?: number };

export interface KeyRing {
  /** Not a promise when the key is trusted already. Throws what the driver throws. */
  authenticate(
    header: string | readonly string[] | undefined,
    remoteAddress: string | undefined,
  ): Authenticated | Promise<Authenticated>;
  /** Look this key up again at its next use; without uuid, all of them. */
  forget(keyUuid?: string): void;
  /** Writes when the keys were last used. */
  flush(): Promise<void>;
}

const missing: Authenticated = { ok: false, failure: { code: 'missing_api_key', details: [] } };
const invalid: Authenticated = { ok: false, failure: { code: 'invalid_api_key', details: [] } };
const tooManyGuesses: Failure = {
  code: 'rate_limited',
  details: [
    {
      field: '',
      code: 'too_many_invalid_keys',
      message: 'Too many requests with invalid API keys came from this address; Retry-After says when to try again.',
    },
  ],
};
const wrongSource: Authenticated = { ok: false, failure: { code: 'source_not_allowed', details: [] } };

export interface KeyRingOptions {
  readonly now?: () => number;
  /** One key that is looked up whatever its form: the operator's own choice for a new installation. */
  readonly anyForm?: string | undefined;
  /** Absent: wrong keys are not counted. */
  readonly guesses?: Guesses | undefined;
}

export function createKeyRing(pool: Pick<pg.Pool, 'query'>, options: KeyRingOptions = {}): KeyRing {
  const now = options.now ?? Date.now;
  const anyForm = options.anyForm === undefined ? undefined : hash('sha256', options.anyForm, 'base64url');
  const entries = new Map<string, Entry>();
  const underWay = new Map<string, Promise<Entry>>();
  let lastUses = new Map<string, number>();

  function refused(remoteAddress: string | undefined): Authenticated | undefined {
    const retrySeconds = options.guesses?.refusedFor(remoteAddress);
    return retrySeconds === undefined ? undefined : { ok: false, failure: tooManyGuesses, retrySeconds };
  }

  function guessed(remoteAddress: string | undefined): Authenticated {
    const present = refused(remoteAddress);
    if (present !== undefined) return present;
    options.guesses?.count(remoteAddress);
    return invalid;
  }

  function judge(known: Known | undefined, remoteAddress: string | undefined): Authenticated {
    const at = now();
    if (known === undefined) return guessed(remoteAddress);
    if ((known.caller.limits.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY) <= at) return invalid;
    if (known.sources !== undefined && !isAmong(known.sources, remoteAddress)) return wrongSource;
    lastUses.set(known.caller.keyUuid, at);
    return { ok: true, caller: known.caller, readOnly: known.readOnly };
  }

  async function load(digest: string): Promise<Entry> {
    // Counted from before the statement: a revocation that commits during it must not gain time.
    const entry: Entry = { until: now() + trustedMilliseconds, known: undefined };
    const { rows } = await pool.query<KeyRow>({ ...lookUp, values: [Buffer.from(digest, 'base64url')] });
    entry.known = rows[0] === undefined ? undefined : knownOf(rows[0]);
    if (entries.size >= remembered) entries.clear();
    entries.set(digest, entry);
    return entry;
  }

  function loadOnce(digest: string): Promise<Entry> {
    const present = underWay.get(digest);
    if (present !== undefined) return present;
    const loading = load(digest).finally(() => underWay.delete(digest));
    underWay.set(digest, loading);
    return loading;
  }

  return {
    authenticate(header, remoteAddress) {
      if (header === undefined || header === '') return missing;
      if (typeof header !== 'string' || header.length > 128) return guessed(remoteAddress);
      const digest = hash('sha256', header, 'base64url');
      const entry = entries.get(digest);
      if (entry !== undefined && entry.until > now()) return judge(entry.known, remoteAddress);
      const role = digest === anyForm ? 'operator' : parseKeyRole(header);
      if (role === undefined || role === 'router') return guessed(remoteAddress);
      // One that was good a moment ago is no guess: whoever shares its address cannot lock it out.
      const present = entry?.known === undefined ? refused(remoteAddress) : undefined;
      if (present !== undefined) return present;
      return loadOnce(digest).then((loaded) => judge(loaded.known, remoteAddress));
    },
    forget(keyUuid) {
      for (const [digest, entry] of entries) {
        if (keyUuid === undefined || entry.known?.caller.keyUuid === keyUuid) entries.delete(digest);
      }
    },
    async flush() {
      if (lastUses.size === 0) return;
      const uses = lastUses;
      lastUses = new Map();
      try {
        await pool.query({
          name: 'api_key_used',
          text: `update api_key k set last_used_at = greatest(k.last_used_at, used.at)
            from unnest($1::uuid[], $2::timestamptz[]) used (uuid, at) where k.uuid = used.uuid`,
          values: [[...uses.keys()], [...uses.values()].map((at) => new Date(at))],
        });
      } catch (error) {
        for (const [uuid, at] of uses) if (!lastUses.has(uuid)) lastUses.set(uuid, at);
        throw error;
      }
    },
  };
}

function knownOf(row: KeyRow): Known {
  return {
    caller: {
      keyUuid: row.uuid,
      accountUuid: row.account_uuid,
      role: row.role,
      providerUuid: row.provider_uuid,
      limits: {
        sources: row.sources?.map(prefixFromTrusted),
        expiresAt: row.expires_at ?? undefined,
        operations: row.operations === null ? undefined : new Set(row.operations),
        requestsPerMinute: row.rate_limit ?? undefined,
      },
    },
    readOnly: row.read_only,
    sources: row.sources === null ? undefined : addressList(row.sources),
  };
}
