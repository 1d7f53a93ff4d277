/**
 * `/livez`: the process answers. `/readyz`: it can serve, which needs the database. No key, no details. Answers sooner
 * than whoever asks gives up, and however often it is asked it asks the database one thing at a time.
 */
import type { FastifyInstance } from 'fastify';
import { answerInTime } from './answer-deadline.ts';

/** Below what balancers and orchestrators wait by default, which is a few seconds. */
const READY_MILLISECONDS = 2_000;

export function registerHealth(app: FastifyInstance, isReady: () => Promise<boolean>): void {
  let asking: Promise<boolean> | undefined;
  const ask = (): Promise<boolean> => {
    asking ??= isReady().finally(() => {
      asking = undefined;
    });
    return asking;
  };

  app.get('/livez', (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    // Whatever keeps the database from answering, the answer is no.
    if (await answerInTime(ask(), undefined, READY_MILLISECONDS).catch(() => false))
      return reply.send({ status: 'ok' });
    return reply.code(503).header('retry-after', '1').send({
      error: 'unavailable',
      message: 'The database cannot be reached at present.',
    });
  });
}
