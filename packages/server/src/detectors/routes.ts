/**
 * What detectors may ask: their stream, reporting, answering with samples. Not part of the public interface: authenticated by
 * detectors' keys alone, which open nothing else, and that before anything of a body is read.
 */
import { createHash } from 'node:crypto';
import type { DetectorReportAnswer, SamplesAnswer } from '@levee/contract/detector.ts';
import { parseKeyRole } from '@levee/core/account/key.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { KnownDetector } from '../store/detectors.ts';
import { isUnavailable } from '../store/failure.ts';
import { type Parsed, parseDetectorReport, parseSamplesAnswer, type ReadReport } from './parse-report.ts';

export interface DetectorRouteServices {
  byKeyHash(keyHash: string): Promise<KnownDetector | undefined>;
  openStream(reply: FastifyReply['raw'], detector: KnownDetector, keyHash: string): void;
  take(detector: KnownDetector, read: ReadReport): Promise<DetectorReportAnswer>;
  takeSamples(detector: KnownDetector, answer: SamplesAnswer): Promise<void>;
  readonly logError: (error: unknown, message: string) => void;
}

/** For 405 and for the list of paths. */
export const detectorPaths = [
  { method: 'GET', path: '/detector/v1/stream' },
  { method: 'POST', path: '/detector/v1/report' },
  { method: 'POST', path: '/detector/v1/samples' },
] as const;

/** A thousand attacks that begin at once, each with what it looks like and some samples; detectors send fewer a report. */
const REPORT_MAXIMUM_BYTES = 16 * 1024 * 1024;
const SAMPLES_MAXIMUM_BYTES = 8 * 1024 * 1024;
/** Of one detector, being read or stored: it sends one at a time; a second one covers an answer that was lost. */
const REPORTS_AT_ONCE = 2;

interface Caller {
  readonly detector: KnownDetector;
  /** Hex. */
  readonly keyHash: string;
}

export function registerDetectorRoutes(app: FastifyInstance, services: DetectorRouteServices): void {
  /** Whose request it is; known before a byte of the body is read. */
  const callers = new WeakMap<FastifyRequest, Caller>();
  const reporting = new Map<string, number>();
  const turns = new Map<string, Promise<unknown>>();

  const authenticated = async (request: FastifyRequest, reply: FastifyReply) => {
    await guarded(services, reply, async () => {
      const caller = await authenticate(services, request);
      if (caller === undefined) refuseKey(reply);
      else callers.set(request, caller);
    });
  };
  const oneByOne = async (request: FastifyRequest, reply: FastifyReply) => {
    const uuid = callers.get(request)?.detector.uuid;
    if (uuid === undefined) return;
    const others = reporting.get(uuid) ?? 0;
    if (others >= REPORTS_AT_ONCE) {
      reply.header('retry-after', '1');
      refuse(reply, 429, 'rate_limited', 'Earlier reports of this detector are still being taken: send one at a time.');
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
  /** In the order in which they were read. */
  const inTurn = async <T>(uuid: string, work: () => Promise<T>): Promise<T> => {
    const turn = (turns.get(uuid) ?? Promise.resolve()).catch(() => {}).then(work);
    turns.set(uuid, turn);
    try {
      return await turn;
    } finally {
      if (turns.get(uuid) === turn) turns.delete(uuid);
    }
  };
  const take = <T>(
    parse: (body: unknown) => Parsed<T>,
    use: (detector: KnownDetector, value: T) => Promise<object>,
  ) => {
    return (request: FastifyRequest, reply: FastifyReply) =>
      guarded(services, reply, async () => {
        const detector = callers.get(request)?.detector;
        if (detector === undefined) return refuseKey(reply);
        const parsed = parse(request.body);
        if (!parsed.ok) return refuse(reply, 400, 'validation_failed', parsed.message, { field: parsed.field });
        reply.send(await use(detector, parsed.value));
      });
  };

  app.get('/detector/v1/stream', { onRequest: authenticated }, (request, reply) =>
    guarded(services, reply, async () => {
      const caller = callers.get(request);
      if (caller === undefined) return refuseKey(reply);
      reply.hijack();
      services.openStream(reply.raw, caller.detector, caller.keyHash);
    }),
  );
  app.post(
    '/detector/v1/report',
    { onRequest: [authenticated, oneByOne], bodyLimit: REPORT_MAXIMUM_BYTES },
    take(parseDetectorReport, (detector, read) => inTurn(detector.uuid, () => services.take(detector, read))),
  );
  app.post(
    '/detector/v1/samples',
    { onRequest: [authenticated, oneByOne], bodyLimit: SAMPLES_MAXIMUM_BYTES },
    take(parseSamplesAnswer, async (detector, answer) => {
      await services.takeSamples(detector, answer);
      return {};
    }),
  );
}

/** Resolves to nothing: a reply is a thenable that waits for its own end, which a hook must not. */
async function guarded(
  services: DetectorRouteServices,
  reply: FastifyReply,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isUnavailable(error)) {
      reply.header('retry-after', '1');
      refuse(reply, 503, 'unavailable', 'The database cannot be reached at present; try again shortly.');
    } else {
      services.logError(error, "a detector's request failed");
      refuse(reply, 500, 'internal', 'The service failed on this request; the request id finds the cause in its log.');
    }
  }
}

async function authenticate(services: DetectorRouteServices, request: FastifyRequest): Promise<Caller | undefined> {
  const [scheme, key = ''] = (request.headers.authorization ?? '').split(' ');
  if (scheme?.toLowerCase() !== 'bearer' || parseKeyRole(key) !== 'detector') return undefined;
  const keyHash = createHash('sha256').update(key).digest('hex');
  const detector = await services.byKeyHash(keyHash);
  return detector && { detector, keyHash };
}

function refuseKey(reply: FastifyReply): void {
  reply.header('www-authenticate', 'Bearer');
  refuse(reply, 401, 'invalid_api_key', "The detector's key is missing, unknown or no longer valid.");
}

function refuse(reply: FastifyReply, status: number, error: string, message: string, more: object = {}): void {
  reply.code(status).send({ error, message, ...more, request_id: reply.request.id });
}
