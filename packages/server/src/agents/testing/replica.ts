/** One replica's agents behind real HTTP, for tests and benchmarks. */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { type ChangeTail, startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { createLocation, createRouter, enrolRouter } from '../../store/routers.ts';
import { type Agents, type AgentsOptions, startAgents } from '../agents.ts';

export interface Replica {
  readonly base: string;
  readonly tail: ChangeTail;
  readonly agents: Agents;
  stop(): Promise<void>;
}

export async function startReplica(database: Database, options: AgentsOptions = {}): Promise<Replica> {
  const tail = await startChangeTail(database);
  const agents = await startAgents(database, tail, options);
  const app = Fastify();
  agents.mount(app);
  await app.listen({ host: '127.0.0.1', port: 0, backlog: 4096 });
  const { port } = app.server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    tail,
    agents,
    async stop() {
      await agents.stop();
      app.server.closeAllConnections();
      await app.close();
      await tail.stop();
    },
  };
}

/** A router that has enrolled; its location is made with it. */
export async function enrolled(database: Database, name: string): Promise<{ uuid: string; key: string }> {
  await createLocation(database.pool, `at-${name}`);
  const created = await createRouter(database.pool, { name, location: `at-${name}`, tunnelAddresses: [] });
  if (!created.ok) throw new Error(created.code);
  const enrolment = await enrolRouter(database.pool, created.token);
  if (!enrolment.ok) throw new Error(enrolment.code);
  return { uuid: enrolment.routerUuid, key: enrolment.key };
}
