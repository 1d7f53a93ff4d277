/** An installation's flowrules and its reconciler at a speaker: a database of its own, and rows written as commands write them. */
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import type { BgpSpeaker } from '@levee/server/backends/bgp/port.ts';
import { startBgp } from '@levee/server/backends/bgp/reconciler.ts';
import {
  type ReadFlowrule,
  readFlowrules,
  seedFlowrule,
  seedFlowruleDeletion,
  testRoutes,
} from '@levee/server/backends/bgp/testing/flowrules.ts';
import { type ChangeTail, startChangeTail } from '@levee/server/store/change-tail.ts';
import type { Database } from '@levee/server/store/database.ts';
import { type SeededProvider, seedProvider } from '@levee/server/store/testing/seed.ts';
import type { TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import type { Fields } from './wanted-routes.ts';

export interface Installation {
  readonly database: Database;
  readonly tail: ChangeTail;
  /** Which has the IPv4 prefix. */
  readonly provider: SeededProvider;
  /** Several replicas of it, one after another; `mark` when it is not that of all tests. */
  start(speaker: BgpSpeaker, mark?: typeof testRoutes.mark): { stop(): Promise<void> };
  /** Stored and committed. */
  announce(fields: readonly Fields[], more?: { readonly expiresAt?: Date }): Promise<string[]>;
  withdraw(uuids: readonly string[]): Promise<void>;
  rows(): Promise<ReadFlowrule[]>;
  areActive(): Promise<boolean>;
  stop(): Promise<void>;
}

/** It has 198.18.0.0/15 and 2001:db8::/32. */
export async function openInstallation(postgres: TestPostgres): Promise<Installation> {
  const database = await postgres.createDatabase();
  const four = await seedProvider(database.pool, '198.18.0.0/15');
  const six = await seedProvider(database.pool, '2001:db8::/32');
  const tail = await startChangeTail(database);
  const running: { stop(): Promise<void> }[] = [];
  const rows = () => readFlowrules(database.pool);
  return {
    database,
    tail,
    provider: four,
    start(speaker, mark = testRoutes.mark) {
      const bgp = startBgp({ database, tail, speaker, routes: { ...testRoutes, mark }, log: () => {} });
      running.push(bgp);
      return bgp;
    },
    async announce(all, more = {}) {
      const uuids: string[] = [];
      for (const fields of all) {
        const dst = dstOf(fields);
        const provider: SeededProvider = dst.includes(':') ? six : four;
        uuids.push(await seedFlowrule(database.pool, provider, { fields: { ...fields, dst }, ...more }));
      }
      tail.wake();
      return uuids;
    },
    async withdraw(uuids) {
      for (const uuid of uuids) await seedFlowruleDeletion(database.pool, uuid);
      tail.wake();
    },
    rows,
    areActive: async () => (await rows()).every(({ active }) => active),
    async stop() {
      await Promise.all(running.map((bgp) => bgp.stop()));
      await tail.stop();
    },
  };
}

/** As rows have it. */
function dstOf(fields: Fields): string {
  const parsed = parseFlowrule(fields);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.canonical.dst;
}
