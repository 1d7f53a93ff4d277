/**
 * For each served operation a request that is carried out, and the requests that meet the errors of its own. What any
 * request can meet (keys, bodies, connections) is derived from the good one by the test. One file an area (cases/).
 * Test code only.
 */
import type { ErrorCode } from '@levee/contract/errors.ts';
import type { ApiFixture, Ask } from './api-fixture.ts';
import type { World } from './world.ts';

export interface Request {
  readonly params?: Readonly<Record<string, string>>;
  readonly ask: Ask;
  /** Whose key the good request carries: to derive restricted keys of the same account. */
  readonly account: string;
}

export interface Cases {
  readonly good: () => Promise<Request>;
  readonly bad: Partial<Record<ErrorCode, () => Promise<Request>>>;
}

export type OperationCases = Readonly<Record<string, Cases>>;

export interface CaseKit {
  readonly api: ApiFixture;
  readonly world: World;
  /** Another number at each call. */
  readonly next: () => number;
  byUser(ask: Ask, params?: Readonly<Record<string, string>>): Request;
  byProvider(ask: Ask, params?: Readonly<Record<string, string>>): Request;
  byOperator(ask: Ask, params?: Readonly<Record<string, string>>): Promise<Request>;
}

export function caseKit(api: ApiFixture, world: World): CaseKit {
  const { provider, user } = world.holders;
  let made = 0;
  return {
    api,
    world,
    next: () => ++made,
    byUser: (ask, params = {}) => ({ params, ask: { key: user.key, ...ask }, account: user.uuid }),
    byProvider: (ask, params = {}) => ({ params, ask: { key: provider.key, ...ask }, account: provider.uuid }),
    async byOperator(ask, params = {}) {
      const { body } = await api.call('whoAmI', {}, { key: api.operatorKey });
      return { params, ask: { key: api.operatorKey, ...ask }, account: body.account.uuid };
    },
  };
}
