/** From requests about keys and the caller itself to commands, and from rows to answers. Decides nothing itself. */
import { randomBytes } from 'node:crypto';
import { KEY_RANDOM_BYTES, makeKey } from '@levee/core/account/key.ts';
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type pg from 'pg';
import {
  type ApiKeyFacts,
  createApiKey,
  findKeyHolder,
  listApiKeys,
  readApiKey,
  revokeApiKey,
} from '../../commands/api-key.ts';
import type { AuditEntry } from '../../commands/audit.ts';
import { executorOf } from '../../commands/executor.ts';
import { findWider, type KeyLimits } from '../../commands/key-limits.ts';
import { findClosedOperations, findUnknownOperations } from '../../commands/key-operations.ts';
import { loadAccount } from '../../commands/load-account.ts';
import { refuse } from '../../commands/outcome.ts';
import { withinQuota } from '../../commands/quota.ts';
import { readQuotas } from '../../commands/set-quota.ts';
import { newUuid } from '../../store/new-uuid.ts';
import type { KeyRing } from '../authentication.ts';
import { type Call, type Handler, isSound, judgedBy, membersOf } from '../call.ts';
import { inThePast } from '../expires-at.ts';
import { keyHash } from '../key-hash.ts';
import { isUuid } from '../uuid-text.ts';

export interface ServiceServices {
  readonly pool: pg.Pool;
  readonly keys: KeyRing;
  readonly now: () => number;
  /** Requests a minute of a key without a limit of its own; 0: any number. */
  readonly rateLimit: number;
  /** The OpenAPI document as JSON text. */
  readonly openapi: () => string;
}

interface KeyBody {
  readonly account_uuid?: string;
  readonly name: string;
  readonly read_only?: boolean;
}

export function serviceHandlers(services: ServiceServices): Record<string, Handler> {
  return {
    createApiKey: {
      write: {
        judge(call, found) {
          const { sources: given, expires_at, rate_limit, operations: named } = membersOf(call.body);
          const sources =
            given === undefined ? undefined : parseSubnets(given, ['sources'], { minimum: 1, maximum: 64 });
          const problems = sources === undefined || sources.ok ? [] : [...sources.problems];
          const isTime = typeof expires_at === 'string' && isSound(found, '/expires_at');
          const expiresAt = isTime ? new Date(expires_at) : undefined;
          if (isTime && !(new Date(expires_at).getTime() > services.now())) problems.push(inThePast(expires_at));
          const isNamed = Array.isArray(named) && isSound(found, '/operations');
          const operations = isNamed ? new Set(named as string[]) : undefined;
          problems.push(...findUnknownOperations(operations));
          const requestsPerMinute = typeof rate_limit === 'number' ? rate_limit : undefined;
          const limits: KeyLimits = {
            sources: sources?.ok ? sources.subnets : undefined,
            expiresAt,
            operations,
            requestsPerMinute,
          };
          // A limit that is wrong in itself is told as that alone.
          const wider = findWider(makerLimits(call, services.rateLimit), {
            ...limits,
            requestsPerMinute: requestsPerMinute ?? (services.rateLimit || undefined),
          }).filter(({ field }) =>
            field.startsWith('/sources')
              ? sources === undefined || sources.ok
              : isSound([...found, ...problems], field),
          );
          return judgedBy([...problems, ...wider], limits);
        },
        async run(call, executor, { sources, expiresAt, operations, requestsPerMinute }: KeyLimits) {
          const body = call.body as KeyBody;
          const holder = await findKeyHolder(executor, call.caller, body.account_uuid);
          if (!holder.ok) return holder;
          const { uuid: accountUuid, provider_uuid: providerUuid } = holder.value;
          const closed = findClosedOperations(operations, holder.value.role);
          if (closed.length > 0) return refuse('validation_failed', ...closed);
          const within = await withinQuota(executor, { accountUuid, providerUuid }, 'api_keys', 1);
          if (!within.ok) return within;
          const text = makeKey(holder.value.role, randomBytes(KEY_RANDOM_BYTES));
          const key = await createApiKey(executor, {
            uuid: newUuid(),
            accountUuid,
            hash: keyHash(text),
            name: body.name,
            readOnly: body.read_only ?? false,
            sources: sources?.map(formatPrefix),
            expiresAt,
            operations: operations && [...operations],
            requestsPerMinute,
          });
          const audit = [keyEntry(undefined, key, providerUuid)];
          return { ok: true, value: { render: () => JSON.stringify({ ...apiKeyJson(key), key: text }), audit } };
        },
      },
    },
    listApiKeys: {
      async read(call) {
        const wanted = call.query.account_uuid;
        const account = typeof wanted === 'string' ? wanted : undefined;
        const outcome = await listApiKeys(executorOf(services.pool), call.caller, account);
        if (!outcome.ok) return outcome;
        return { ok: true, answer: { body: JSON.stringify(outcome.value.map(apiKeyJson)) } };
      },
    },
    revokeApiKey: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await revokeApiKey(executor, call.caller, uuid);
          if (!outcome.ok) return outcome;
          const { before, key, providerUuid } = outcome.value;
          const json = { ...apiKeyJson(key), message: 'The API key is revoked.' };
          return {
            ok: true,
            value: {
              render: () => JSON.stringify(json),
              committed: () => services.keys.forget(key.uuid),
              audit: before.revoked_at === null ? [keyEntry(before, key, providerUuid)] : [],
            },
          };
        },
      },
    },
    whoAmI: {
      async read(call) {
        const executor = executorOf(services.pool);
        const { accountUuid, role, keyUuid } = call.caller;
        const [account, key, quotas] = await Promise.all([
          loadAccount(executor, accountUuid),
          readApiKey(executor, keyUuid),
          readQuotas(executor, accountUuid, role === 'provider'),
        ]);
        if (account === undefined || key === undefined) return refuse('invalid_api_key');
        const body = JSON.stringify({
          account: {
            uuid: account.uuid,
            role: account.role,
            name: account.name,
            ...(account.provider_uuid !== null && { provider_uuid: account.provider_uuid }),
            ...(account.username !== null && { username: account.username }),
            ...(account.email !== null && { email: account.email }),
            subnets: account.subnets,
          },
          api_key: apiKeyJson(key),
          ...(Object.keys(quotas).length > 0 && { quotas }),
        });
        return { ok: true, answer: { body } };
      },
    },
    readOpenapi: { read: () => ({ ok: true, answer: { body: services.openapi() } }) },
  };
}

/** What an operator's key gives is not bound by how many requests it may make itself. */
function makerLimits({ caller }: Call, rateLimit: number): KeyLimits {
  const own = caller.limits.requestsPerMinute ?? (rateLimit || undefined);
  return { ...caller.limits, requestsPerMinute: caller.role === 'operator' ? undefined : own };
}

function keyEntry(before: ApiKeyFacts | undefined, key: ApiKeyFacts, providerUuid: string | null): AuditEntry {
  const { uuid, account_uuid: ownerUuid } = key;
  return {
    kind: 'api_key',
    uuid,
    ownerUuid,
    providerUuid,
    before: before && apiKeyJson(before),
    after: apiKeyJson(key),
  };
}

function apiKeyJson(key: ApiKeyFacts): object {
  const time = (name: string, at: Date | null) => (at === null ? {} : { [name]: at.toISOString() });
  return {
    uuid: key.uuid,
    account_uuid: key.account_uuid,
    name: key.name,
    read_only: key.read_only,
    ...(key.sources !== null && { sources: key.sources }),
    ...(key.operations !== null && { operations: key.operations }),
    ...(key.rate_limit !== null && { rate_limit: key.rate_limit }),
    ...time('expires_at', key.expires_at),
    ...time('last_used_at', key.last_used_at),
    ...time('revoked_at', key.revoked_at),
    created_at: key.created_at.toISOString(),
  };
}
