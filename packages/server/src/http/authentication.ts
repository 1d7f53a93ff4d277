/**
 * From the x-api-key header to the caller. Keys that were looked up are trusted for a moment, so that a busy client
 * costs the database a look-up a moment and not one a request; the moment is short enough that a revoked key stops
 * everywhere within a second. A key with a wrong checksum never reaches the database; any other is looked up, however many
 * wrong ones its source has tried: nobody who shares an address with a guesser is locked out. Keeps hashes, never keys.
 */
import { hash } from 'node:crypto';
import type { BlockList } from 'node:net';
import { parseKeyRole } from '@levee/core/account/key.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import type pg from 'pg';
import type { Caller } from '../commands/caller.ts';
import type { Failure } from '../commands/outcome.ts';
import { addressList, isAmong } from './address-list.ts';
import { createKeyLookUp, type KeyRow } from './key-look-up.ts';
import { type Guesses, sourceOf } from './rate-limit.ts';

/** Revocation must be everywhere within 1 s; the rest of it is for a slow look-up. */
const trustedMilliseconds = 400;
/** Of good keys, and as many of wrong ones: a flood of those displaces no good one. */
const remembered = 20_000;

interface Known {
  readonly caller: Caller;
  readonly readOnly: boolean;
  readonly sources: BlockList | undefined;
}

interface Entry {
  readonly until: number;
  readonly known: Known | undefined;
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
  const lookUp = createKeyLookUp(pool);
  const good = new Map<string, Entry>();
  const wrong = new Map<string, Entry>();
  const underWay = new Map<string, Promise<Entry>>();
  let lastUses = new Map<string, number>();

  /** Another use that is none of the key's holder, as it seems. */
  function refuse(answer: Authenticated, remoteAddress: string | undefined): Authenticated {
    const retrySeconds = options.guesses?.refusedFor(remoteAddress);
    if (retrySeconds !== undefined) return { ok: false, failure: tooManyGuesses, retrySeconds };
    options.guesses?.count(remoteAddress);
    return answer;
  }

  function judge(known: Known | undefined, remoteAddress: string | undefined): Authenticated {
    const at = now();
    const endsAt = known?.caller.limits.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    if (known === undefined || endsAt <= at) return refuse(invalid, remoteAddress);
    // Not from the key's own bucket, which whoever has got hold of it elsewhere would empty for its holder.
    if (known.sources !== undefined && !isAmong(known.sources, remoteAddress)) {
      return refuse(wrongSource, remoteAddress);
    }
    lastUses.set(known.caller.keyUuid, at);
    return { ok: true, caller: known.caller, readOnly: known.readOnly };
  }

  async function load(digest: string, lane: string): Promise<Entry> {
    // Counted from before the statement: a revocation that commits during it must not gain time.
    const until = now() + trustedMilliseconds;
    const row = await lookUp(digest, lane);
    const entry: Entry = { until, known: row && knownOf(row) };
    const [entries, others] = row === undefined ? [wrong, good] : [good, wrong];
    others.delete(digest);
    if (entries.size >= remembered) entries.clear();
    entries.set(digest, entry);
    return entry;
  }

  function loadOnce(digest: string, lane: string): Promise<Entry> {
    const present = underWay.get(digest);
    if (present !== undefined) return present;
    const loading = load(digest, lane).finally(() => underWay.delete(digest));
    underWay.set(digest, loading);
    return loading;
  }

  return {
    authenticate(header, remoteAddress) {
      if (header === undefined || header === '') return missing;
      if (typeof header !== 'string' || header.length > 128) return refuse(invalid, remoteAddress);
      const digest = hash('sha256', header, 'base64url');
      const entry = good.get(digest) ?? wrong.get(digest);
      if (entry !== undefined && entry.until > now()) return judge(entry.known, remoteAddress);
      const role = digest === anyForm ? 'operator' : parseKeyRole(header);
      if (role === undefined || role === 'router' || role === 'detector') return refuse(invalid, remoteAddress);
      // One that was good a moment ago waits for nobody else's.
      const lane = entry?.known?.caller.keyUuid ?? sourceOf(remoteAddress ?? '');
      return loadOnce(digest, lane).then((loaded) => judge(loaded.known, remoteAddress));
    },
    forget(keyUuid) {
      if (keyUuid === undefined) wrong.clear();
      for (const [digest, entry] of good) {
        if (keyUuid === undefined || entry.known?.caller.keyUuid === keyUuid) good.delete(digest);
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
