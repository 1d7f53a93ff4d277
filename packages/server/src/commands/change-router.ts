/** Announces routers and changes them, with the ends of tunnels that follow from it in the same transaction. */
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { createRouter, type NewRouter, type RouterRow, readRouter, updateRouter } from '../store/routers.ts';
import type { Executor } from './executor.ts';
import { judgeRouter, type RouterFields } from './judge-router.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { alignEnds } from './router-tunnels.ts';
import { takeTurn } from './tunnel-ends.ts';

export interface AnnouncedRouter {
  readonly router: RouterRow;
  readonly token: string;
  readonly expiresAt: Date;
}

export async function announceRouter(
  executor: Executor,
  pools: InnerPools,
  fields: NewRouter,
): Promise<Outcome<AnnouncedRouter>> {
  const from = await takeTurn(executor);
  const judged = await judgeRouter(executor, fields);
  if (!judged.ok) return judged;
  const created = await createRouter(executor.client, fields);
  if (!created.ok) return refuse('not_found');
  const aligned = await alignEnds(executor, pools, from, created.router);
  return aligned.ok ? done(created) : aligned;
}

export interface ChangedRouter {
  readonly before: RouterRow;
  readonly router: RouterRow;
}

/** `uuid` is well-formed. What is undefined stays. */
export async function changeRouter(
  executor: Executor,
  pools: InnerPools,
  uuid: string,
  fields: RouterFields,
): Promise<Outcome<ChangedRouter>> {
  // Before any row of a router is locked: whoever gives ends to tunnels has the turn and wants those.
  const from = await takeTurn(executor);
  const before = await readRouter(executor.client, uuid);
  if (before === undefined) return refuse('not_found');
  const judged = await judgeRouter(executor, fields, before.uuid);
  if (!judged.ok) return judged;
  const { name, tunnelAddresses } = fields;
  await updateRouter(executor.client, before.uuid, { name, locationUuid: judged.value, tunnelAddresses });
  const router = await readRouter(executor.client, before.uuid);
  if (router === undefined) return refuse('not_found');
  const aligned = await alignEnds(executor, pools, from, router);
  return aligned.ok ? done({ before, router }) : aligned;
}
