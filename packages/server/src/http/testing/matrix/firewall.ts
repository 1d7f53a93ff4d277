/** The matrix' rows: operations on firewall rules. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, ownersIn, ownOnly, ownOrUsers, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

export function firewallRows({ api, world }: MatrixKit): Rows {
  const ruleBody = (target: HolderName) => ({ dst: world.addressOf[target], protocol: 'udp', action: 'drop' });
  return {
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
      expect: (caller, target) =>
        caller === target ? 200 : caller === 'provider' && ofProvider.has(target) ? 403 : 404,
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
    previewFirewallRule: {
      expect: ownOnly(403),
      send: (key, target) => api.call('previewFirewallRule', {}, { key, body: ruleBody(target) }),
      check: (reply) => assert.equal(reply.body.reason.code, 'no_detector'),
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
  };
}
