/**
 * Puts the HTTP side together: routes for every operation that has a handler, the document that describes exactly
 * those, health. Gets everything it needs handed in; starts nothing of its own but the writing of last uses.
 */

import { openapiDocument } from '@levee/contract/openapi.ts';
import type { Operation } from '@levee/contract/operation.ts';
import { operations } from '@levee/contract/operations.ts';
import { type InnerPools, usualPools } from '@levee/core/tunnel/allocation.ts';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Logger } from 'pino';
import { defaultFlowspecBudget } from '../commands/mitigate-attack.ts';
import { createRuleReader } from '../commands/read-rules.ts';
import { createRuleCreator } from '../commands/rule-creator.ts';
import type { EventStreams } from '../events/streams.ts';
import { createKeyRing, type KeyRing } from './authentication.ts';
import type { Handler } from './call.ts';
import { docsPaths, registerDocs } from './docs/register-docs.ts';
import { attackHandlers } from './handlers/attack.ts';
import { auditHandlers } from './handlers/audit.ts';
import { detectionHandlers } from './handlers/detection.ts';
import { eventHandlers } from './handlers/event.ts';
import { filterHandlers } from './handlers/filter.ts';
import { firewallHandlers } from './handlers/firewall.ts';
import { flowruleHandlers } from './handlers/flowrule.ts';
import { mitigationHandlers } from './handlers/mitigation.ts';
import { operatorHandlers } from './handlers/operator.ts';
import { quotaHandlers } from './handlers/quota.ts';
import { type RdnsSettled, rdnsHandlers } from './handlers/rdns.ts';
import { rdnsZoneHandlers, type SecondariesOf } from './handlers/rdns-zone.ts';
import { serviceHandlers } from './handlers/service.ts';
import { speakerHandlers } from './handlers/speaker.ts';
import { topologyHandlers } from './handlers/topology.ts';
import { tunnelHandlers } from './handlers/tunnel.ts';
import { userHandlers } from './handlers/user.ts';
import { type WebhookPort, webhookHandlers } from './handlers/webhook.ts';
import { registerHealth } from './health.ts';
import { type MetricsPort, metricsPath, registerMetrics } from './metrics.ts';
import type { AppliedStates } from './object-answer.ts';
import { pathTemplate, templatesOf } from './path-methods.ts';
import { createRateLimits } from './rate-limit.ts';
import { registerOperations } from './register-operations.ts';
import { createHttpServer, type HttpLimits, type HttpServer } from './server.ts';
import type { WriteServices } from './write-answer.ts';

export const apiBase = '/v1';

export interface ApiServices extends WriteServices {
  readonly pool: pg.Pool;
  readonly states: AppliedStates;
  readonly routersChanged: () => Promise<void>;
  /** Absent: nobody applies PTR records here, and nothing is waited for. */
  readonly rdnsSettled?: RdnsSettled | undefined;
  /** Absent: no embedded DNS server runs here. */
  readonly secondaries?: SecondariesOf | undefined;
  /** Absent: events are not served. */
  readonly eventStreams?: EventStreams | undefined;
  /** Absent: there are no webhooks. */
  readonly webhooks?: WebhookPort | undefined;
  /** Absent: no metrics are served. */
  readonly metrics?: MetricsPort | undefined;
  readonly log: Logger;
  readonly isReady: () => Promise<boolean>;
  /** Further routes on the same listeners (routers' agents). */
  readonly mount?: (app: FastifyInstance) => void;
  /** Paths of `mount`, for 405. */
  readonly mounted?: readonly { readonly method: string; readonly path: string }[];
  readonly limits?: HttpLimits;
  /** Addresses and subnets whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Requests a minute of a key that has no limit of its own; 0 or absent: no limits, whatever a key has. */
  readonly rateLimit?: number | undefined;
  readonly now?: () => number;
  /** Where tunnels' inner addresses come from. */
  readonly innerPools?: InnerPools | undefined;
  /** Whether a BGP speaker follows the change log; without one flowrules stay proposed. */
  readonly bgpSpeaker?: boolean;
  /** FlowSpec routes that may be announced at once; absent: the usual budget. */
  readonly flowspecBudget?: number | undefined;
  /** A key that may be of another form than those made here. */
  readonly operatorKey?: string | undefined;
}

export interface Api extends HttpServer {
  readonly keys: KeyRing;
  /** Those that are served. */
  readonly operations: readonly Operation[];
}

export function createApi(services: ApiServices): Api {
  const server = createHttpServer(services.log, services.limits, services.trustedProxies);
  const now = services.now ?? Date.now;
  const rateLimits = createRateLimits(services.rateLimit ?? 0);
  const { guesses } = rateLimits ?? {};
  const keys = createKeyRing(services.pool, { now, anyForm: services.operatorKey, guesses });
  const { pool, states, innerPools: pools = usualPools } = services;
  let document = '';
  const handlers: Record<string, Handler> = {
    ...firewallHandlers({ pool, states, now, reader: createRuleReader(pool), creator: createRuleCreator(pool) }),
    ...attackHandlers({ pool, now, states, hasSpeaker: services.bgpSpeaker === true }),
    ...flowruleHandlers({ pool, hasSpeaker: services.bgpSpeaker === true }),
    ...filterHandlers({ pool, states, now, waitApplied: services.waitApplied }),
    ...userHandlers({ pool, keys }),
    ...serviceHandlers({ pool, keys, now, rateLimit: services.rateLimit ?? 0, openapi: () => document }),
    ...rdnsHandlers({ pool, settled: services.rdnsSettled ?? (async () => 'not-enforced') }),
    ...rdnsZoneHandlers({ pool, secondaries: services.secondaries ?? (() => []) }),
    ...operatorHandlers({ pool }),
    ...mitigationHandlers({
      pool,
      states,
      hasSpeaker: services.bgpSpeaker === true,
      mitigation: { flowspecBudget: services.flowspecBudget ?? defaultFlowspecBudget },
    }),
    ...quotaHandlers({ pool }),
    ...speakerHandlers({ pool, hasSpeaker: services.bgpSpeaker === true }),
    ...detectionHandlers({ pool }),
    ...(services.eventStreams && eventHandlers(services.eventStreams)),
    ...(services.webhooks && webhookHandlers({ pool, webhooks: services.webhooks })),
    ...auditHandlers({ pool }),
    ...topologyHandlers({ pool, pools, routersChanged: services.routersChanged }),
    ...tunnelHandlers({ pool, states, pools, waitApplied: services.waitApplied, now }),
  };
  // Before the routes: a hook holds for those that come after it.
  if (services.metrics !== undefined) registerMetrics(server.app, { ...services.metrics, ...server, pool, keys });
  const served = registerOperations(server.app, apiBase, operations, handlers, {
    ...services,
    ...server,
    keys,
    rateLimits,
  });
  document = JSON.stringify(openapiDocument(served, { baseUrl: apiBase }));
  registerHealth(server.app, services.isReady);
  registerDocs(server.app, { openapi: () => document, sendException: server.sendException });
  services.mount?.(server.app);
  server.setPaths([
    ...templatesOf(apiBase, served),
    ...['/livez', '/readyz', ...docsPaths, ...(services.metrics === undefined ? [] : [metricsPath])].map((path) =>
      pathTemplate('GET', path),
    ),
    ...(services.mounted ?? []).map(({ method, path }) => pathTemplate(method, path)),
  ]);
  return { ...server, keys, operations: served };
}
