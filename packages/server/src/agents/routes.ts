/**
 * What routers' agents may ask: their stream, reporting, enrolling. Not part of the public interface: authenticated by
 * router keys alone, which open nothing else, and that before anything of a body is read.
 */
import type { AgentEnrolled } from '@levee/contract/agent.ts';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { machineRequests, refuse } from '../machines/machine-requests.ts';
import { enrolRouter } from '../store/routers.ts';
import { parseReport } from './parse-report.ts';
import type { ReportWriter } from './report-writer.ts';
import type { KnownRouter, RouterRegistry } from './router-registry.ts';
import type { StreamHub } from './stream-hub.ts';
import type { WireCursors } from './wire-cursor.ts';

export interface AgentServices {
  readonly pool: pg.Pool;
  readonly registry: RouterRegistry;
  readonly writer: ReportWriter;
  readonly hub: StreamHub;
  readonly cursors: WireCursors;
  readonly logError: (error: unknown, message: string) => void;
}

/** For 405 and for the list of paths. */
export const agentPaths = [
  { method: 'GET', path: '/agent/v1/stream' },
  { method: 'POST', path: '/agent/v1/report' },
  { method: 'POST', path: '/agent/v1/enroll' },
] as const;

/**
 * A report lists every rule that the kernel refuses, of a router that may hold a hundred thousand; agents page the hits
 * and shorten the reasons to stay below (edge: sync/report-size.ts).
 */
const REPORT_MAXIMUM_BYTES = 16 * 1024 * 1024;
const ENROLMENT_MAXIMUM_BYTES = 4 * 1024;
const TOKEN = /^[\w-]{16,128}$/;

export function registerAgentRoutes(app: FastifyInstance, services: AgentServices): void {
  const { authenticated, oneByOne, callerOf, guarded, refuseKey } = machineRequests<KnownRouter>({
    role: 'router',
    byKeyHash: (keyHash) => services.registry.byKeyHash(keyHash),
    uuidOf: ({ uuid }) => uuid,
    logError: services.logError,
  });

  app.get('/agent/v1/stream', { onRequest: authenticated }, (request, reply) =>
    guarded(reply, async () => {
      const router = callerOf(request, reply);
      if (router === undefined) return;
      const { after } = request.query as { after?: unknown };
      // One that was not given here, or is mangled, is treated as none: the snapshot sets it right.
      const cursor = typeof after === 'string' ? services.cursors.read(after) : undefined;
      reply.hijack();
      services.hub.open(reply.raw, router, cursor === 'foreign' ? undefined : cursor);
    }),
  );

  const reports = { onRequest: [authenticated, oneByOne], bodyLimit: REPORT_MAXIMUM_BYTES };
  app.post('/agent/v1/report', reports, (request, reply) =>
    guarded(reply, async () => {
      const router = callerOf(request, reply);
      if (router === undefined) return;
      const parsed = parseReport(request.body, services.cursors);
      if (!parsed.ok) {
        return refuse(reply, 400, 'validation_failed', parsed.message, { field: parsed.field });
      }
      const saved = await services.writer.save({ routerUuid: router.uuid, keyHash: router.keyHash, ...parsed.report });
      if (saved === 'unknown') return refuseKey(reply);
      if (saved === 'ahead') {
        const message = 'cursor: lies beyond the end of the log, so the stream never gave it';
        return refuse(reply, 400, 'validation_failed', message, { field: '/cursor' });
      }
      reply.send({});
    }),
  );

  app.post('/agent/v1/enroll', { bodyLimit: ENROLMENT_MAXIMUM_BYTES }, (request, reply) =>
    guarded(reply, async () => {
      const token = (request.body as { token?: unknown } | null | undefined)?.token;
      if (typeof token !== 'string') {
        return refuse(reply, 400, 'validation_failed', 'token: must be a string', { field: '/token' });
      }
      const enrolment = TOKEN.test(token) ? await enrolRouter(services.pool, token) : undefined;
      if (enrolment === undefined || !enrolment.ok) {
        const message = 'The enrolment token is not valid: it is unknown, was used before, or is older than an hour.';
        return refuse(reply, 401, 'invalid_api_key', message);
      }
      await services.registry.refresh();
      const { routerUuid, name, location, key } = enrolment;
      reply
        .header('cache-control', 'no-store')
        .send({ router_uuid: routerUuid, name, location, key } satisfies AgentEnrolled);
    }),
  );
}
