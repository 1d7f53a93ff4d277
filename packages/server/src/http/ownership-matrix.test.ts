import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Operation } from '@levee/contract/operation.ts';
import { type ApiFixture, type Reply, startApi } from './testing/api-fixture.ts';
import { buildWorld, type HolderName, type World } from './testing/world.ts';

type CallerName = 'operator' | 'provider' | 'user';
type Verdict = 200 | 403 | 404;

interface Row {
  /** What a caller whose role may call the operation gets, by whose object or address it names. */
  readonly expect: (caller: CallerName, target: HolderName) => Verdict;
  readonly send: (key: string, target: HolderName) => Promise<Reply>;
  /** More that must hold of a good answer. */
  readonly check?: (reply: Reply, caller: CallerName, target: HolderName) => void;
}

const targets: readonly HolderName[] = ['provider', 'user', 'sibling', 'stranger', 'strangerProvider'];
const ofProvider = new Set<HolderName>(['provider', 'user', 'sibling']);

let api: ApiFixture;
let world: World;

before(async () => {
  api = await startApi();
  world = await buildWorld(api);
});
after(() => api.stop());

/** Objects: one's own, and for a provider those of its users. The others do not exist. */
const ownOrUsers =
  (otherwise: Verdict) =>
  (caller: CallerName, target: HolderName): Verdict =>
    caller === target || (caller === 'provider' && ofProvider.has(target)) ? 200 : otherwise;
const ownOnly =
  (otherwise: Verdict) =>
  (caller: CallerName, target: HolderName): Verdict =>
    caller === target ? 200 : otherwise;
const anyAccount = (caller: CallerName, target: HolderName): Verdict =>
  caller === 'operator' ? 200 : ownOrUsers(404)(caller, target);
const everyone = (): Verdict => 200;
let made = 0;

const rows: Readonly<Record<string, Row>> = {
  createFirewallRule: {
    expect: ownOnly(403),
    send: (key, target) => api.call('createFirewallRule', {}, { key, body: ruleBody(target) }),
    check: (reply, caller) => assert.equal(reply.body.owner_uuid, world.holders[caller as HolderName].uuid),
  },
  readFirewallRule: {
    expect: ownOrUsers(404),
    send: async (key, target) => api.call('readFirewallRule', { uuid: (await world.rule(target)).uuid }, { key }),
    check: (reply, _, target) => assert.equal(reply.body[0].owner_uuid, world.holders[target].uuid),
  },
  deleteFirewallRule: {
    expect: ownOrUsers(404),
    send: async (key, target) => api.call('deleteFirewallRule', { uuid: (await world.rule(target)).uuid }, { key }),
  },
  changeFirewallRule: {
    // A provider sees its users' rules, and so is told that it may not change them.
    expect: (caller, target) => (caller === target ? 200 : caller === 'provider' && ofProvider.has(target) ? 403 : 404),
    send: async (key, target) => {
      const { uuid } = await world.rule(target);
      return api.call('changeFirewallRule', { uuid }, { key, body: { priority: 7 } });
    },
  },
  replaceFirewallRules: {
    expect: ownOnly(403),
    send: (key, target) => {
      const body = { rules: [{ protocol: 'tcp', action: 'accept' }] };
      return api.call('replaceFirewallRules', {}, { key, body, query: `?dst=${world.addressOf[target]}` });
    },
  },
  explainPacket: {
    expect: ownOrUsers(403),
    send: (key, target) => {
      const body = { dst: world.addressOf[target], src: '192.0.2.1', protocol: 'udp' };
      return api.call('explainPacket', {}, { key, body });
    },
  },
  confirmChange: {
    expect: ownOnly(404),
    send: async (key, target) => {
      const { change_uuid } = await world.rule(target, { confirm_within: 3600 });
      assert.ok(change_uuid);
      return api.call('confirmChange', { change_uuid }, { key });
    },
  },
  listFirewallRules: {
    expect: everyone,
    send: async (key, target) => {
      await world.rule(target);
      return api.call('listFirewallRules', {}, { key });
    },
    check: (reply, caller) => assert.deepEqual(ownersIn(reply), [world.holders[caller as HolderName].uuid]),
  },
  listProviderFirewallRules: {
    expect: everyone,
    send: async (key, target) => {
      await world.rule(target);
      const query = `?user_uuid=${world.holders[target].uuid}`;
      return api.call('listProviderFirewallRules', {}, { key, query });
    },
    check: (reply, _, target) =>
      assert.deepEqual(ownersIn(reply), ofProvider.has(target) ? [world.holders[target].uuid] : []),
  },
  createUser: {
    expect: (_, target) => (ofProvider.has(target) ? 200 : 403),
    send: (key, target) => {
      const username = `fresh${++made}`;
      // Addresses that no user holds yet, in the space of the target's provider.
      const net = ofProvider.has(target) ? '203.0.113' : '198.51.100';
      const body = {
        username,
        email: `${username}@example.net`,
        password: 'ochre-meadow-tin-41',
        ips: [`${net}.${99 + made}`],
      };
      return api.call('createUser', {}, { key, body });
    },
  },
  addUserIps: {
    expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
    send: (key, target) => {
      const body = { user_uuid: world.holders[target].uuid, ips: [`203.0.113.${130 + ++made}`] };
      return api.call('addUserIps', {}, { key, body });
    },
  },
  deleteUserIps: {
    expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
    send: (key, target) => {
      const ips = [{ user: '203.0.113.15', sibling: '203.0.113.31' }[target as 'user'] ?? world.addressOf[target]];
      return api.call('deleteUserIps', {}, { key, body: { user_uuid: world.holders[target].uuid, ips } });
    },
  },
  resetUserPassword: {
    expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
    send: (key, target) => {
      const body = { email: world.holders[target].email ?? 'nobody@example.net', password: 'ochre-meadow-tin-42' };
      return api.call('resetUserPassword', {}, { key, body });
    },
  },
  createApiKey: {
    expect: anyAccount,
    send: (key, target) => {
      const body = { account_uuid: world.holders[target].uuid, name: 'another' };
      return api.call('createApiKey', {}, { key, body });
    },
    check: (reply, _, target) => assert.equal(reply.body.account_uuid, world.holders[target].uuid),
  },
  listApiKeys: {
    expect: anyAccount,
    send: (key, target) => api.call('listApiKeys', {}, { key, query: `?account_uuid=${world.holders[target].uuid}` }),
  },
  revokeApiKey: {
    expect: anyAccount,
    send: async (key, target) => {
      const body = { account_uuid: world.holders[target].uuid, name: 'short-lived' };
      const issued = await api.call('createApiKey', {}, { key: api.operatorKey, body });
      return api.call('revokeApiKey', { uuid: issued.body.uuid }, { key });
    },
  },
  whoAmI: {
    expect: everyone,
    send: (key) => api.call('whoAmI', {}, { key }),
    check: (reply, caller) => assert.equal(reply.body.account.role, caller),
  },
  readOpenapi: { expect: everyone, send: (key) => api.call('readOpenapi', {}, { key }) },
  createProvider: {
    expect: everyone,
    send: (key) => api.call('createProvider', {}, { key, body: { name: `matrix ${++made}`, prefixes: [] } }),
  },
  listProviders: { expect: everyone, send: (key) => api.call('listProviders', {}, { key }) },
  createLocation: {
    expect: everyone,
    send: (key) => api.call('createLocation', {}, { key, body: { name: `place${++made}` } }),
  },
  listLocations: { expect: everyone, send: (key) => api.call('listLocations', {}, { key }) },
  createRouter: {
    expect: everyone,
    send: (key) => api.call('createRouter', {}, { key, body: { name: `edge${++made}`, location: 'fra1' } }),
  },
  listRouters: { expect: everyone, send: (key) => api.call('listRouters', {}, { key }) },
  readRouter: { expect: everyone, send: async (key) => api.call('readRouter', { uuid: await announced() }, { key }) },
  renewRouterToken: {
    expect: everyone,
    send: async (key) => api.call('renewRouterToken', { uuid: await announced() }, { key }),
  },
  deleteRouter: {
    expect: everyone,
    send: async (key) => api.call('deleteRouter', { uuid: await announced() }, { key }),
  },
  deleteLocation: {
    expect: everyone,
    send: async (key) => {
      const body = { name: `place${++made}` };
      const { uuid } = (await api.call('createLocation', {}, { key: api.operatorKey, body })).body;
      return api.call('deleteLocation', { uuid }, { key });
    },
  },
};

async function announced(): Promise<string> {
  const body = { name: `edge${++made}`, location: 'fra1' };
  return (await api.call('createRouter', {}, { key: api.operatorKey, body })).body.uuid;
}

function ruleBody(target: HolderName) {
  return { dst: world.addressOf[target], protocol: 'udp', action: 'drop' };
}

function ownersIn(reply: Reply): string[] {
  return [...new Set<string>(reply.body.map((rule: { owner_uuid: string }) => rule.owner_uuid))];
}

function keyOf(caller: CallerName): string {
  return caller === 'operator' ? api.operatorKey : world.holders[caller].key;
}

/** The 404 of another's object and of one that never was are one and the same. */
function withoutRequestId(reply: Reply): object {
  return { ...reply.body, request_id: undefined };
}

test('every served operation has a row in the matrix', () => {
  const served = api.api.operations.map((operation) => operation.id).sort();
  assert.deepEqual(Object.keys(rows).sort(), served);
});

test('every role gets what it may have of every account, and nothing else', async (context) => {
  let cells = 0;
  for (const operation of api.api.operations) {
    const row = rows[operation.id];
    assert.ok(row, operation.id);
    for (const caller of ['operator', 'provider', 'user'] as const) {
      await context.test(`${operation.id} by ${caller}`, async () => {
        for (const target of targets) {
          await judge(operation, row, caller, target);
          cells++;
        }
      });
    }
  }
  assert.equal(cells, api.api.operations.length * 3 * targets.length);
});

async function judge(operation: Operation, row: Row, caller: CallerName, target: HolderName): Promise<void> {
  const reply = await row.send(keyOf(caller), target);
  const where = `${operation.id} by ${caller} on ${target}'s: ${reply.text.slice(0, 400)}`;
  if (!operation.roles.includes(caller)) {
    assert.equal(reply.status, 403, where);
    assert.equal(reply.body.error, operation.roleError, where);
    return;
  }
  assert.equal(reply.status, row.expect(caller, target), where);
  if (reply.status === 200) row.check?.(reply, caller, target);
  if (reply.status === 403) assert.equal(reply.body.error, 'ip_not_allowed', where);
  if (reply.status === 404 && operation.params !== undefined) {
    const [name = ''] = Object.keys(operation.params.properties);
    const body = operation.id === 'changeFirewallRule' ? { body: { priority: 7 } } : {};
    const missing = '0190a5d0-0000-7000-8000-000000000000';
    const never = await api.call(operation.id, { [name]: missing }, { key: keyOf(caller), ...body });
    assert.deepEqual(withoutRequestId(reply), withoutRequestId(never), where);
    const malformed = await api.call(operation.id, { [name]: 'not-a-uuid' }, { key: keyOf(caller), ...body });
    assert.deepEqual(withoutRequestId(reply), withoutRequestId(malformed), where);
  }
}
