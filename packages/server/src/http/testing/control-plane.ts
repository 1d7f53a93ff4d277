/** The interface and the routers' agents of one replica, on real HTTP and a real database. Test code only. */
import { type Agents, startAgents } from '../../agents/agents.ts';
import { agentPaths } from '../../agents/routes.ts';
import { createDispatcher } from '../../backends/webhook/dispatcher.ts';
import { createTargetJudge } from '../../backends/webhook/target.ts';
import { createAttackTimings } from '../../events/attack-timings.ts';
import { type Events, type LeadersTask, startEvents } from '../../events/events.ts';
import type { Renderers } from '../../events/objects.ts';
import type { StreamsOptions } from '../../events/streams.ts';
import { startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { createApi } from '../api.ts';
import { eventRenderers } from '../event-objects.ts';
import { namesOfTests, silent } from './api-fixture.ts';

export interface ControlPlane {
  readonly url: string;
  readonly agents: Agents;
  readonly events: Events;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  readonly streams?: StreamsOptions;
  /** Absent: the rows as `http` renders them. */
  readonly renderers?: Renderers;
  /** What the leader does besides. */
  readonly tasks?: readonly LeadersTask[];
  readonly log?: (message: string) => void;
}

export async function startControlPlane(database: Database, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const tail = await startChangeTail(database);
  const agents = await startAgents(database, tail, { heartbeatSeconds: 0.1 });
  const { pool } = database;
  const judge = createTargetJudge({ allow: ['127.0.0.0/8'], resolve: namesOfTests });
  const webhooks = createDispatcher({ pool, judge });
  const { registry, view } = agents;
  const timings = createAttackTimings({ pool, tail, registry, view, committed: () => tail.wake() });
  const events = startEvents(database, {
    tail,
    registry: agents.registry,
    view: agents.view,
    renderers: options.renderers ?? eventRenderers({ pool, states: agents.view, hasSpeaker: false }),
    tasks: [...webhooks.tasks, timings, ...(options.tasks ?? [])],
    streams: { heartbeatMilliseconds: 100, ...options.streams },
    ...(options.log && { log: options.log }),
  });
  const api = createApi({
    pool,
    eventStreams: events.streams,
    webhooks: { judge, wake: (...why) => webhooks.wake(...why) },
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
    agents,
    events,
    async stop() {
      await events.stop();
      await agents.stop();
      await api.close(500);
      await tail.stop();
    },
  };
}
