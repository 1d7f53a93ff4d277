/** The interface and the routers' agents of one replica, on real HTTP and a real database. Test code only. */
import { startAgents } from '../../agents/agents.ts';
import { agentPaths } from '../../agents/routes.ts';
import { startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { createApi } from '../api.ts';
import { silent } from './api-fixture.ts';

export interface ControlPlane {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startControlPlane(database: Database): Promise<ControlPlane> {
  const tail = await startChangeTail(database);
  const agents = await startAgents(database, tail, { heartbeatSeconds: 0.1 });
  const api = createApi({
    pool: database.pool,
    states: agents.view,
    wake: () => tail.wake(),
    waitApplied: (...change) => agents.view.waitApplied(...change),
    routersChanged: () => agents.registry.refresh(),
    log: silent,
    isReady: async () => true,
    mount: (app) => agents.mount(app),
    mounted: agentPaths,
  });
  const { port } = await api.listen({ host: '127.0.0.1', port: 0 });
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await agents.stop();
      await api.close(500);
      await tail.stop();
    },
  };
}
