/** From the operator's requests about quotas to commands and answers. Decides nothing itself. */
import { type QuotaKind, quotaKinds } from '@levee/contract/schemas/quota.ts';
import type pg from 'pg';
import type { AuditEntry } from '../../commands/audit.ts';
import { executorOf } from '../../commands/executor.ts';
import { refuse } from '../../commands/outcome.ts';
import { type AccountQuota, type QuotaChange, readQuota, setQuota } from '../../commands/set-quota.ts';
import { type Handler, membersOf } from '../call.ts';
import { isUuid } from '../uuid-text.ts';

export interface QuotaServices {
  readonly pool: pg.Pool;
}

export function quotaHandlers({ pool }: QuotaServices): Record<string, Handler> {
  return {
    readQuota: {
      async read(call) {
        const uuid = call.params.account_uuid ?? '';
        const outcome = isUuid(uuid) ? await readQuota(executorOf(pool), uuid) : refuse('not_found');
        return outcome.ok ? { ok: true, answer: { body: JSON.stringify(quotaJson(outcome.value)) } } : outcome;
      },
    },
    setQuota: {
      write: {
        async run(call, executor) {
          const uuid = call.params.account_uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const given = membersOf(call.body);
          const maxima = new Map<QuotaKind, number>();
          for (const kind of quotaKinds) if (typeof given[kind] === 'number') maxima.set(kind, given[kind]);
          const outcome = await setQuota(executor, uuid, maxima);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify(quotaJson(outcome.value.after));
          return { ok: true, value: { render: () => body, audit: [entryOf(outcome.value)] } };
        },
      },
    },
  };
}

function quotaJson({ accountUuid, quotas }: AccountQuota): object {
  return { account_uuid: accountUuid, quotas };
}

function entryOf({ before, after }: QuotaChange): AuditEntry {
  const { accountUuid: uuid, providerUuid } = after;
  const maxima = ({ quotas }: AccountQuota) =>
    Object.fromEntries(Object.entries(quotas).map(([kind, { maximum }]) => [kind, maximum]));
  return { kind: 'quota', uuid, ownerUuid: uuid, providerUuid, before: maxima(before), after: maxima(after) };
}
