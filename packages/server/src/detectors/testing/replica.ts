/** One replica's side of detectors behind real HTTP. Test code only. */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { type Detectors, startDetectors } from '../detectors.ts';

export interface DetectorReplica {
  readonly base: string;
  readonly detectors: Detectors;
  /** What it logged of failures. */
  readonly failures: readonly unknown[];
  stop(): Promise<void>;
}

export async function startDetectorReplica(database: Database): Promise<DetectorReplica> {
  const tail = await startChangeTail(database);
  const failures: unknown[] = [];
  const detectors = startDetectors(database, tail, {
    committed: () => tail.wake(),
    logError: (error) => failures.push(error),
  });
  const app = Fastify();
  detectors.mount(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    detectors,
    failures,
    async stop() {
      await detectors.stop();
      app.server.closeAllConnections();
      await app.close();
      await tail.stop();
    },
  };
}
