/**
 * The addresses that a caller may act on: a user's ips, a provider's prefixes less what users hold. Owns the question
 * "may this caller have an object here?" for commands that do not ask it inside their own statement.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { milliseconds } from './stored-row.ts';

export interface Place {
  readonly subnet: string;
  readonly provider_uuid: string;
  /** Since when it is the caller's. */
  readonly since_ms: number;
}

/** Selects the subnet, the provider and since when. $1 account, $2 destination, $3 whether what users hold is out of bounds. */
export const placeText = `select s.subnet, s.provider_uuid, s.created_at from subnet s
    where s.account_uuid = $1 and s.subnet >>= $2::cidr
      and not ($3::bool and exists (select from subnet u where u.role = 'user' and u.subnet && $2::cidr))
    limit 1`;

const placeStatement = {
  name: 'own_space_place',
  text: `select subnet::text, provider_uuid::text, ${milliseconds('created_at')} as since_ms from (${placeText}) s`,
};

/** The grant that covers `dst`; undefined: the caller may not have objects there. */
export async function findPlace(executor: Executor, caller: Caller, dst: string): Promise<Place | undefined> {
  const [place] = await executor.rows<Place>(placeStatement, [caller.accountUuid, dst, caller.role === 'provider']);
  return place;
}

const insideStatement = {
  name: 'own_space_inside',
  text: 'select from subnet where account_uuid = $1 and subnet >>= $2::cidr',
};

/** Whether all of `prefix` is the caller's to look at: for a provider, also what its users hold. */
export async function holds(executor: Executor, caller: Caller, prefix: string): Promise<boolean> {
  return (await executor.rows(insideStatement, [caller.accountUuid, prefix])).length > 0;
}

export function notAllowed(field: string, received: string, caller: Caller): Problem {
  const name = field.slice(1).replaceAll('/', '.');
  const allowed =
    caller.role === 'provider'
      ? "it must lie inside one of the provider's prefixes and touch no subnet that a user holds"
      : "it must lie inside one of the user's subnets";
  return {
    field,
    code: 'ip_not_allowed',
    message: `${name}: ${received} is not within the caller's addresses; ${allowed}`,
  };
}
