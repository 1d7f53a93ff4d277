/**
 * For each served operation a request that is carried out, and the requests that meet the errors of its own. What any
 * request can meet (keys, bodies, connections) is derived from the good one by the test. Test code only.
 */
import assert from 'node:assert/strict';
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

let made = 0;

export function operationCases(api: ApiFixture, world: World): Readonly<Record<string, Cases>> {
  const { provider, user, stranger } = world.holders;
  const dst = world.addressOf.user;
  const rule = { dst, protocol: 'udp', action: 'drop' };
  const byUser = (ask: Ask, params = {}): Request => ({ params, ask: { key: user.key, ...ask }, account: user.uuid });
  const byProvider = (ask: Ask, params = {}): Request => ({
    params,
    ask: { key: provider.key, ...ask },
    account: provider.uuid,
  });
  const operatorAccount = async () => (await api.call('whoAmI', {}, { key: api.operatorKey })).body.account.uuid;
  const byOperator = async (ask: Ask, params = {}): Promise<Request> => ({
    params,
    ask: { key: api.operatorKey, ...ask },
    account: await operatorAccount(),
  });
  const newUser = () => {
    const username = `case${++made}`;
    return { username, email: `${username}@example.net`, password: 'ochre-meadow-tin-43', ips: [] as string[] };
  };
  const announced = async (): Promise<string> => {
    const body = { name: `edge${++made}`, location: 'fra1' };
    return (await api.call('createRouter', {}, { key: api.operatorKey, body })).body.uuid;
  };
  const undone = async () => {
    const { change_uuid } = await world.rule('user', { confirm_within: 3600 });
    assert.ok(change_uuid);
    return change_uuid;
  };

  return {
    createFirewallRule: {
      good: async () => byUser({ body: rule }),
      bad: { ip_not_allowed: async () => byUser({ body: { ...rule, dst: world.addressOf.sibling } }) },
    },
    readFirewallRule: {
      good: async () => byUser({}, { uuid: (await world.rule('user')).uuid }),
      bad: {},
    },
    deleteFirewallRule: {
      good: async () => byUser({}, { uuid: (await world.rule('user')).uuid }),
      bad: {},
    },
    changeFirewallRule: {
      good: async () => byUser({ body: { priority: 3 } }, { uuid: (await world.rule('user')).uuid }),
      bad: {
        ip_not_allowed: async () =>
          byUser({ body: { dst: world.addressOf.stranger } }, { uuid: (await world.rule('user')).uuid }),
        conflict: async () => {
          const { uuid } = await world.rule('user');
          await api.call('deleteFirewallRule', { uuid }, { key: user.key });
          return byUser({ body: { priority: 3 } }, { uuid });
        },
      },
    },
    listFirewallRules: { good: async () => byUser({}), bad: {} },
    listProviderFirewallRules: { good: async () => byProvider({}), bad: {} },
    replaceFirewallRules: {
      good: async () => byUser({ query: `?dst=${dst}`, body: { rules: [{ protocol: 'udp', action: 'drop' }] } }),
      bad: { ip_not_allowed: async () => byUser({ query: '?dst=192.0.2.1', body: { rules: [] } }) },
    },
    explainPacket: {
      good: async () => byUser({ body: { dst, src: '192.0.2.1', protocol: 'udp' } }),
      bad: {
        ip_not_allowed: async () => byUser({ body: { dst: '192.0.2.9', src: '192.0.2.1', protocol: 'udp' } }),
      },
    },
    confirmChange: {
      good: async () => byUser({}, { change_uuid: await undone() }),
      bad: {
        conflict: async () => {
          const change_uuid = await undone();
          await api.database.pool.query(`update confirmation set deadline = now() where change_uuid = $1`, [
            change_uuid,
          ]);
          return byUser({}, { change_uuid });
        },
      },
    },
    createUser: {
      good: async () => byProvider({ body: newUser() }),
      bad: {
        ip_not_allowed: async () => byProvider({ body: { ...newUser(), ips: [world.addressOf.stranger] } }),
        conflict: async () => byProvider({ body: { ...newUser(), ips: [dst] } }),
      },
    },
    addUserIps: {
      good: async () => byProvider({ body: { user_uuid: user.uuid, ips: [`203.0.113.${130 + ++made}`] } }),
      bad: {
        ip_not_allowed: async () => byProvider({ body: { user_uuid: user.uuid, ips: ['192.0.2.1'] } }),
        not_found: async () => byProvider({ body: { user_uuid: stranger.uuid, ips: [dst] } }),
        conflict: async () => byProvider({ body: { user_uuid: user.uuid, ips: [world.addressOf.sibling] } }),
      },
    },
    deleteUserIps: {
      good: async () => {
        const ips = [`2001:db8:9:${(++made).toString(16)}::/64`];
        await api.call('addUserIps', {}, { key: provider.key, body: { user_uuid: user.uuid, ips } });
        return byProvider({ body: { user_uuid: user.uuid, ips } });
      },
      bad: { not_found: async () => byProvider({ body: { user_uuid: stranger.uuid, ips: [dst] } }) },
    },
    resetUserPassword: {
      good: async () => byProvider({ body: { email: user.email, password: 'ochre-meadow-tin-44' } }),
      bad: {
        not_found: async () => byProvider({ body: { email: stranger.email, password: 'ochre-meadow-tin-44' } }),
      },
    },
    createApiKey: {
      good: async () => byUser({ body: { name: 'another' } }),
      bad: { not_found: async () => byUser({ body: { name: 'another', account_uuid: stranger.uuid } }) },
    },
    listApiKeys: {
      good: async () => byUser({}),
      bad: { not_found: async () => byUser({ query: `?account_uuid=${stranger.uuid}` }) },
    },
    revokeApiKey: {
      good: async () => {
        const issued = await api.call('createApiKey', {}, { key: user.key, body: { name: 'short-lived' } });
        return byUser({}, { uuid: issued.body.uuid });
      },
      bad: {
        conflict: async () => {
          const { body } = await api.call('whoAmI', {}, { key: api.operatorKey });
          return { params: { uuid: body.api_key.uuid }, ask: { key: api.operatorKey }, account: body.account.uuid };
        },
      },
    },
    whoAmI: { good: async () => byUser({}), bad: {} },
    readOpenapi: { good: async () => byUser({}), bad: {} },
    createProvider: {
      good: () => byOperator({ body: { name: `case ${++made}`, prefixes: [] } }),
      bad: { conflict: () => byOperator({ body: { name: `case ${++made}`, prefixes: ['203.0.113.0/25'] } }) },
    },
    listProviders: { good: () => byOperator({}), bad: {} },
    createLocation: {
      good: () => byOperator({ body: { name: `place${++made}` } }),
      bad: { conflict: () => byOperator({ body: { name: 'fra1' } }) },
    },
    listLocations: { good: () => byOperator({}), bad: {} },
    createRouter: {
      good: () => byOperator({ body: { name: `edge${++made}`, location: 'fra1', tunnel_addresses: ['192.0.2.1'] } }),
      bad: {
        not_found: () => byOperator({ body: { name: `edge${++made}`, location: 'nowhere' } }),
        conflict: async () => {
          const body = { name: `edge${++made}`, location: 'fra1' };
          await api.call('createRouter', {}, { key: api.operatorKey, body });
          return byOperator({ body });
        },
      },
    },
    listRouters: { good: () => byOperator({}), bad: {} },
    readRouter: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    renewRouterToken: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    deleteRouter: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    deleteLocation: {
      good: async () => {
        const { body } = await api.call(
          'createLocation',
          {},
          { key: api.operatorKey, body: { name: `place${++made}` } },
        );
        return byOperator({}, { uuid: body.uuid });
      },
      bad: {
        conflict: async () => {
          await announced();
          const { body } = await api.call('listLocations', {}, { key: api.operatorKey });
          const { uuid } = body.find((each: { name: string }) => each.name === 'fra1');
          return byOperator({}, { uuid });
        },
      },
    },
  };
}
