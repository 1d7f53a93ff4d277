/** From the operator's requests to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type pg from 'pg';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { createProvider } from '../../commands/create-provider.ts';
import { executorOf } from '../../commands/executor.ts';
import { loadProviders } from '../../commands/load-account.ts';
import { refuse } from '../../commands/outcome.ts';
import { newUuid } from '../../store/new-uuid.ts';
import type { Handler } from '../call.ts';

export interface OperatorServices {
  readonly pool: pg.Pool;
}

export function operatorHandlers(services: OperatorServices): Record<string, Handler> {
  return {
    createProvider: {
      write: {
        async run(call, executor) {
          const body = call.body as { name: string; prefixes: unknown };
          const parsed = parseSubnets(body.prefixes, ['prefixes'], { minimum: 0, maximum: 1024 });
          if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
          const prefixes = parsed.subnets.map(formatPrefix);
          const outcome = await createProvider(executor, { uuid: newUuid(), name: body.name, prefixes });
          if (!outcome.ok) return outcome;
          return { ok: true, value: { render: () => JSON.stringify(providerJson(outcome.value)) } };
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
