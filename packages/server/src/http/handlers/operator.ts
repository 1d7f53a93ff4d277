/** From the operator's requests to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { readAddress } from '@levee/core/net/read.ts';
import { type Problem, quote } from '@levee/core/problem.ts';
import type pg from 'pg';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { createProvider } from '../../commands/create-provider.ts';
import { executorOf } from '../../commands/executor.ts';
import { loadProviders } from '../../commands/load-account.ts';
import { refuse } from '../../commands/outcome.ts';
import { newUuid } from '../../store/new-uuid.ts';
import {
  createLocation,
  createRouter,
  type LocationRow,
  listLocations,
  listRouters,
  type RouterRow,
} from '../../store/routers.ts';
import { type Handler, judgedBy, membersOf } from '../call.ts';

export interface OperatorServices {
  readonly pool: pg.Pool;
  /** A router was made: whoever keeps routers in memory reads them again. */
  readonly routersChanged: () => Promise<void>;
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
    createLocation: {
      write: {
        async run(call, executor) {
          const { name } = call.body as { name: string };
          const location = await createLocation(executor.client, name);
          return { ok: true, value: { render: () => JSON.stringify(locationJson(location)) } };
        },
      },
    },
    listLocations: {
      async read() {
        const locations = await listLocations(services.pool);
        return { ok: true, answer: { body: JSON.stringify(locations.map(locationJson)) } };
      },
    },
    createRouter: {
      write: {
        judge(call) {
          const given = membersOf(call.body).tunnel_addresses;
          const { problems, addresses } = readTunnelAddresses(Array.isArray(given) ? given : []);
          return judgedBy(problems, addresses);
        },
        async run(call, executor, tunnelAddresses: readonly string[]) {
          const { name, location } = call.body as { name: string; location: string };
          const created = await createRouter(executor.client, { name, location, tunnelAddresses });
          if (!created.ok) return refuse('not_found', noLocation(location));
          const { enrolled: _, ...router } = routerJson(created.router);
          const json = {
            ...router,
            enrollment_token: created.token,
            enrollment_expires_at: created.expiresAt.toISOString(),
          };
          const committed = () => void services.routersChanged().catch(() => {});
          return { ok: true, value: { render: () => JSON.stringify(json), committed } };
        },
      },
    },
    listRouters: {
      async read() {
        const routers = await listRouters(services.pool);
        return { ok: true, answer: { body: JSON.stringify(routers.map(routerJson)) } };
      },
    },
  };
}

function locationJson(location: LocationRow): object {
  return { uuid: location.uuid, name: location.name, created_at: location.created_at.toISOString() };
}

function routerJson(router: RouterRow) {
  return {
    uuid: router.uuid,
    name: router.name,
    location: router.location,
    tunnel_addresses: router.tunnel_addresses,
    created_at: router.created_at.toISOString(),
    enrolled: router.enrolled,
    ...(router.enforcement !== null && { enforcement: router.enforcement }),
    ...(router.enforcement_reason !== null && { enforcement_reason: router.enforcement_reason }),
    ...(router.last_seen_at !== null && { last_seen_at: router.last_seen_at.toISOString() }),
  };
}

function noLocation(received: string): Problem {
  const message = `location: there is no location ${quote(received)}; create it first`;
  return { field: '/location', code: 'not_found', message };
}

/** Canonical; at most one a family. */
function readTunnelAddresses(given: readonly unknown[]): { problems: Problem[]; addresses: string[] } {
  const problems: Problem[] = [];
  const byFamily = new Map<number, string>();
  // One more than are allowed: that there are too many is the schema's to say.
  for (const [index, text] of given.slice(0, 3).entries()) {
    const read = readAddress(text, ['tunnel_addresses', index], problems);
    if (read === undefined) continue;
    if (byFamily.has(read.family)) {
      const message = `tunnel_addresses.${index}: is a second IPv${read.family} address; at most one a family`;
      problems.push({ field: `/tunnel_addresses/${index}`, code: 'duplicate', message });
    }
    byFamily.set(read.family, formatAddress(read));
  }
  return { problems, addresses: [...byFamily.values()] };
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
