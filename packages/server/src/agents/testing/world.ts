/**
 * What agents are tested in: one PostgreSQL a test file, and for each test a fresh database with a provider and two
 * replicas that share nothing but that database. Must never outlive the test that opened it.
 */
import { after, before } from 'node:test';
import type { Database } from '../../store/database.ts';
import { type SeededChange, type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import type { DerivedState } from '../applied-view.ts';
import { type Replica, startReplica } from './replica.ts';

export interface World {
  readonly database: Database;
  readonly provider: SeededProvider;
  readonly one: Replica;
  /** Another replica, with a pool and memory of its own. */
  readonly two: Replica;
  /** What the stream would tell routers after that change. */
  cursorOf(rule: SeededChange): string;
}

export type InWorld = (work: (world: World) => Promise<void>) => Promise<void>;

/** Once a test file, at its top level: the server starts before its first test and stops after its last one. */
export function prepareWorlds(): InWorld {
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startTestPostgres();
  });
  after(() => postgres?.stop());

  return async (work) => {
    const database = await postgres.createDatabase();
    const one = await startReplica(database);
    try {
      const two = await startReplica(postgres.openAgain(database));
      try {
        const provider = await seedProvider(database.pool);
        await work({ database, provider, one, two, cursorOf: (rule) => cursorOf(one, rule) });
      } finally {
        await two.stop();
      }
    } finally {
      await one.stop();
    }
  };
}

export function cursorOf({ agents }: Pick<Replica, 'agents'>, { change }: SeededChange): string {
  return agents.cursors.write({ xid: Number(change.xid), position: change.position });
}

/** `more`: fields of the object asked for that differ from a rule that is there. */
export function stateOf(replica: Replica, rule: SeededChange, more: object = {}): DerivedState {
  return replica.agents.view.stateOf({ uuid: rule.uuid, change: rule.change, deleted: false, ...more });
}
