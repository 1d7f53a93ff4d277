/**
 * What detectors may ask: their stream, reporting, answering with samples. Not part of the public interface: authenticated by
 * detectors' keys alone, which open nothing else, and that before anything of a body is read.
 */
import type { DetectorReportAnswer, SamplesAnswer } from '@levee/contract/detector.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { machineRequests, refuse } from '../machines/machine-requests.ts';
import type { KnownDetector } from '../store/detectors.ts';
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

interface Caller {
  readonly detector: KnownDetector;
  /** Hex. */
  readonly keyHash: string;
}

export function registerDetectorRoutes(app: FastifyInstance, services: DetectorRouteServices): void {
  const { authenticated, oneByOne, callerOf, guarded } = machineRequests<Caller>({
    role: 'detector',
    byKeyHash: async (keyHash) => {
      const detector = await services.byKeyHash(keyHash);
      return detector && { detector, keyHash };
    },
    uuidOf: ({ detector }) => detector.uuid,
    logError: services.logError,
  });
  const turns = new Map<string, Promise<unknown>>();
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
      guarded(reply, async () => {
        const detector = callerOf(request, reply)?.detector;
        if (detector === undefined) return;
        const parsed = parse(request.body);
        if (!parsed.ok) return refuse(reply, 400, 'validation_failed', parsed.message, { field: parsed.field });
        reply.send(await use(detector, parsed.value));
      });
  };

  app.get('/detector/v1/stream', { onRequest: authenticated }, (request, reply) =>
    guarded(reply, async () => {
      const caller = callerOf(request, reply);
      if (caller === undefined) return;
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
