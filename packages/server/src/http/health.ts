/** `/livez`: the process answers. `/readyz`: it can serve, which needs the database. No key, no details. */
import type { FastifyInstance } from 'fastify';
import { answerInTime } from './answer-deadline.ts';

export function registerHealth(app: FastifyInstance, isReady: () => Promise<boolean>): void {
  app.get('/livez', (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    // Whatever keeps the database from answering, the answer is no.
    if (await answerInTime(isReady()).catch(() => false)) return reply.send({ status: 'ok' });
    return reply.code(503).header('retry-after', '1').send({
      error: 'unavailable',
      message: 'The database cannot be reached at present.',
    });
  });
}
