/** From the operator's requests about providers to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { type Prefix, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type { Problem } from '@levee/core/problem.ts';
import type pg from 'pg';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { changeProvider, type ProviderChange } from '../../commands/change-provider.ts';
import { createProvider } from '../../commands/create-provider.ts';
import { executorOf } from '../../commands/executor.ts';
import { loadProviders } from '../../commands/load-account.ts';
import { refuse } from '../../commands/outcome.ts';
import type { RemovedCounts } from '../../commands/withdraw-space.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, type Judged, judgedBy, membersOf } from '../call.ts';
import { isUuid } from '../uuid-text.ts';

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
    changeProvider: {
      write: {
        judge: judgeChange,
        async run(call, executor, change: ProviderChange) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await changeProvider(executor, uuid, change);
          if (!outcome.ok) return outcome;
          const { before, account, withdrawn } = outcome.value;
          const json = {
            ...providerJson(account),
            removed: withdrawn?.removed ?? nothingRemoved,
            tunnels_changed: withdrawn?.tunnelsChanged ?? 0,
          };
          const entry = {
            kind: 'account',
            uuid: account.uuid,
            ownerUuid: account.uuid,
            providerUuid: account.uuid,
            before: providerJson(before),
            after: providerJson(account),
          } as const;
          const place = withdrawn?.change;
          return {
            ok: true,
            value: {
              change: place && { xid: place.change_xid, position: place.change_position },
              render: () => JSON.stringify(json),
              audit: [entry, ...(withdrawn?.audit ?? [])],
            },
          };
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

const nothingRemoved: RemovedCounts = { firewall_rules: 0, filters: 0, tunnels: 0, rdns: 0, flowrules: 0 };

function judgeChange({ body }: Call): Judged {
  const { name, add_prefixes, remove_prefixes } = membersOf(body);
  const problems: Problem[] = [];
  const read = (value: unknown, field: string): readonly Prefix[] => {
    if (value === undefined) return [];
    const parsed = parseSubnets(value, [field], { minimum: 1, maximum: 1024 });
    if (parsed.ok) return parsed.subnets;
    problems.push(...parsed.problems);
    return [];
  };
  const added = read(add_prefixes, 'add_prefixes');
  const removed = read(remove_prefixes, 'remove_prefixes');
  for (const [index, prefix] of added.entries()) {
    const both = removed.find((each) => prefixesOverlap(each, prefix));
    if (both === undefined) continue;
    const message = `add_prefixes.${index}: ${formatPrefix(prefix)} overlaps ${formatPrefix(both)} of remove_prefixes`;
    problems.push({ field: `/add_prefixes/${index}`, code: 'overlap', message });
  }
  return judgedBy(problems, { name: name as string | undefined, added, removed } satisfies ProviderChange);
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
