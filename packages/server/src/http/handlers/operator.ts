/** From the operator's requests about providers to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type pg from 'pg';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { createProvider } from '../../commands/create-provider.ts';
import { executorOf } from '../../commands/executor.ts';
import { loadProviders } from '../../commands/load-account.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Handler, membersOf } from '../call.ts';

export interface OperatorServices {
  readonly pool: pg.Pool;
}

export function operatorHandlers(services: OperatorServices): Record<string, Handler> {
  return {
    createProvider: {
      write: {
        judge(call) {
          const parsed = parseSubnets(membersOf(call.body).prefixes, ['prefixes'], { minimum: 0, maximum: 1024 });
          return parsed.ok ? { ok: true, value: parsed.subnets.map(formatPrefix) } : parsed;
        },
        async run(call, executor, prefixes: readonly string[]) {
          const { name } = call.body as { name: string };
          const outcome = await createProvider(executor, { uuid: newUuid(), name, prefixes });
          if (!outcome.ok) return outcome;
          const { uuid } = outcome.value;
          const json = providerJson(outcome.value);
          const audit = [{ kind: 'account', uuid, ownerUuid: uuid, providerUuid: uuid, after: json } as const];
          return { ok: true, value: { render: () => JSON.stringify(json), audit } };
        },
      },
    },
    listProviders: {
      async read() {
        const providers = await loadProviders(executorOf(services.pool));
        return { ok: true, answer: { body: JSON.stringify(providers.map(providerJson)) } };
      },
    },
  };
}

function providerJson(account: AccountWithSubnets): object {
  return {
    uuid: account.uuid,
    name: account.name,
    prefixes: account.subnets,
    created_at: account.created_at.toISOString(),
    updated_at: account.updated_at.toISOString(),
  };
}
