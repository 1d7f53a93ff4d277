/**
 * What routers' agents may ask: their stream, reporting, enrolling. Not part of the public interface: authenticated by
 * router keys alone, which open nothing else, and that before anything of a body is read.
 */
import { createHash } from 'node:crypto';
import type { AgentEnrolled } from '@levee/contract/agent.ts';
import { parseKeyRole } from '@levee/core/account/key.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import { isUnavailable } from '../store/failure.ts';
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
/** Of one router, being read or stored. An agent sends one at a time; a second one covers an answer that was lost. */
const REPORTS_AT_ONCE = 2;
const TOKEN = /^[\w-]{16,128}$/;

export function registerAgentRoutes(app: FastifyInstance, services: AgentServices): void {
  /** Whose request it is; known before a byte of the body is read. */
  const callers = new WeakMap<FastifyRequest, KnownRouter>();
  const reporting = new Map<string, number>();

  const authenticated = async (request: FastifyRequest, reply: FastifyReply) => {
    await guarded(services, reply, async () => {
      const router = await authenticate(services.registry, request);
      if (router === undefined) refuseKey(reply);
      else callers.set(request, router);
    });
  };
  const oneByOne = async (request: FastifyRequest, reply: FastifyReply) => {
    const uuid = callers.get(request)?.uuid;
    if (uuid === undefined) return;
    const others = reporting.get(uuid) ?? 0;
    if (others >= REPORTS_AT_ONCE) {
      reply.header('retry-after', '1');
      refuse(reply, 429, 'rate_limited', 'Earlier reports of this router are still being taken: send one at a time.');
      return;
    }
    reporting.set(uuid, others + 1);
    // Comes in any case, also when the sender goes away in the middle.
    reply.raw.on('close', () => {
      const left = (reporting.get(uuid) ?? 1) - 1;
      if (left > 0) reporting.set(uuid, left);
      else reporting.delete(uuid);
    });
  };

  app.get('/agent/v1/stream', { onRequest: authenticated }, (request, reply) =>
    guarded(services, reply, async () => {
      const router = callers.get(request);
      if (router === undefined) return refuseKey(reply);
      const { after } = request.query as { after?: unknown };
      // One that was not given here, or is mangled, is treated as none: the snapshot sets it right.
      const cursor = typeof after === 'string' ? services.cursors.read(after) : undefined;
      reply.hijack();
      services.hub.open(reply.raw, router, cursor === 'foreign' ? undefined : cursor);
    }),
  );

  const reports = { onRequest: [authenticated, oneByOne], bodyLimit: REPORT_MAXIMUM_BYTES };
  app.post('/agent/v1/report', reports, (request, reply) =>
    guarded(services, reply, async () => {
      const router = callers.get(request);
      if (router === undefined) return refuseKey(reply);
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
    guarded(services, reply, async () => {
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

/** Resolves to nothing: a reply is a thenable that waits for its own end, which a hook must not. */
async function guarded(services: AgentServices, reply: FastifyReply, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isUnavailable(error)) {
      reply.header('retry-after', '1');
      refuse(reply, 503, 'unavailable', 'The database cannot be reached at present; try again shortly.');
    } else {
      services.logError(error, 'an agent request failed');
      refuse(reply, 500, 'internal', 'The service failed on this request; the request id finds the cause in its log.');
    }
  }
}

async function authenticate(registry: RouterRegistry, request: FastifyRequest): Promise<KnownRouter | undefined> {
  const [scheme, key = ''] = (request.headers.authorization ?? '').split(' ');
  if (scheme?.toLowerCase() !== 'bearer' || parseKeyRole(key) !== 'router') return undefined;
  return registry.byKeyHash(createHash('sha256').update(key).digest('hex'));
}

function refuseKey(reply: FastifyReply): void {
  reply.header('www-authenticate', 'Bearer');
  refuse(reply, 401, 'invalid_api_key', 'The router key is missing, unknown or no longer valid.');
}

function refuse(reply: FastifyReply, status: number, error: string, message: string, more: object = {}): void {
  reply.code(status).send({ error, message, ...more, request_id: reply.request.id });
}
