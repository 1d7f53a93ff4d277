/**
 * Everything that routers' agents need, put together: what main starts, http mounts and asks for states.
 */
import { agentHeartbeatSeconds, agentRulesPerLine } from '@levee/contract/agent.ts';
import type { FastifyInstance } from 'fastify';
import type { ChangeTail } from '../store/change-tail.ts';
import type { Database } from '../store/database.ts';
import { type AppliedView, createAppliedView } from './applied-view.ts';
import { createReportWriter } from './report-writer.ts';
import { type RouterRegistry, startRouterRegistry } from './router-registry.ts';
import { registerAgentRoutes } from './routes.ts';
import { createStreamHub, type StreamHub } from './stream-hub.ts';
import { createWireCursors, type WireCursors } from './wire-cursor.ts';

export interface Agents {
  readonly registry: RouterRegistry;
  readonly view: AppliedView;
  readonly hub: StreamHub;
  readonly cursors: WireCursors;
  /** Adds the routes of `agentPaths`. */
  mount(app: FastifyInstance): void;
  /** Ends every stream at once. Call it before the HTTP server closes, which waits for open answers. */
  stop(): Promise<void>;
}

export interface AgentsOptions {
  readonly heartbeatSeconds?: number;
  /** After so long without reading a router's stream is dropped. */
  readonly stalledMilliseconds?: number;
  readonly log?: (message: string) => void;
  readonly logError?: (error: unknown, message: string) => void;
}

export async function startAgents(
  database: Pick<Database, 'connect' | 'pool'>,
  tail: ChangeTail,
  options: AgentsOptions = {},
): Promise<Agents> {
  const log = options.log ?? (() => {});
  const cursors = createWireCursors(() => tail.identity);
  const registry = await startRouterRegistry(database, { log });
  // What was acknowledged may belong to a log that is no more.
  const leave = tail.subscribe({ changes: () => {}, gap: () => void registry.refresh().catch(() => {}) });
  const view = createAppliedView(registry);
  const writer = createReportWriter(database.pool, registry);
  const hub = createStreamHub(database.pool, tail, {
    heartbeatSeconds: options.heartbeatSeconds ?? agentHeartbeatSeconds,
    objectsPerLine: agentRulesPerLine,
    cursors,
    mayRead: (router) => registry.knows(router.keyHash),
    ...(options.stalledMilliseconds !== undefined && { stalledMilliseconds: options.stalledMilliseconds }),
    log,
  });
  const logError = options.logError ?? ((error, message) => log(`${message}: ${(error as Error).message}`));
  return {
    registry,
    view,
    hub,
    cursors,
    mount: (app) => registerAgentRoutes(app, { pool: database.pool, registry, writer, hub, cursors, logError }),
    async stop() {
      leave();
      hub.stop();
      view.stop();
      await registry.stop();
    },
  };
}
