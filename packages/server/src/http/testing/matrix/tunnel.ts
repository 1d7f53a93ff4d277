/** The matrix' rows: operations on tunnels. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, ownersIn, ownOnly, ownOrUsers, type Rows } from '../matrix.ts';
import { ensureTestRouter } from '../tunnel-world.ts';
import type { HolderName } from '../world.ts';

export function tunnelRows({ api, world }: MatrixKit): Rows {
  const body = (target: HolderName) => ({ ips: [world.addressOf[target]], endpoint: '192.0.2.77', type: 'Geneve' });
  /** Each holder has one address: what is routed there is let go of first. */
  const freed = () => api.database.pool.query('delete from tunnel');
  const tunnel = async (owner: HolderName): Promise<string> => {
    await freed();
    const reply = await api.call('createTunnel', {}, { key: world.holders[owner].key, body: body(owner) });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid;
  };
  return {
    createTunnel: {
      expect: ownOnly(403),
      send: async (key, target) => {
        await freed();
        return api.call('createTunnel', {}, { key, body: body(target) });
      },
      check: (reply, caller) => assert.equal(reply.body.owner_uuid, world.holders[caller as HolderName].uuid),
    },
    listTunnels: {
      expect: everyone,
      send: async (key, target) => {
        await tunnel(target);
        return api.call('listTunnels', {}, { key });
      },
      check: (reply, caller, target) => {
        const owners = reply.body.tunnels.map((each: { owner_uuid: string }) => each.owner_uuid);
        assert.deepEqual(owners, caller === target ? [world.holders[target].uuid] : []);
      },
    },
    listProviderTunnels: {
      expect: everyone,
      send: async (key, target) => {
        await tunnel(target);
        const query = `?user_uuid=${world.holders[target].uuid}`;
        return api.call('listProviderTunnels', {}, { key, query });
      },
      check: (reply, _, target) =>
        assert.deepEqual(ownersIn(reply), ofProvider.has(target) ? [world.holders[target].uuid] : []),
    },
    readTunnel: {
      expect: ownOrUsers(404),
      send: async (key, target) => api.call('readTunnel', { uuid: await tunnel(target) }, { key }),
      check: (reply, _, target) => assert.equal(reply.body[0].owner_uuid, world.holders[target].uuid),
    },
    deleteTunnel: {
      expect: ownOrUsers(404),
      send: async (key, target) => api.call('deleteTunnel', { uuid: await tunnel(target) }, { key }),
    },
    changeTunnel: {
      // A provider sees its users' tunnels, and so is told that it may not change them.
      expect: (caller, target) =>
        caller === target ? 200 : caller === 'provider' && ofProvider.has(target) ? 403 : 404,
      send: async (key, target) => {
        const uuid = await tunnel(target);
        return api.call('changeTunnel', { uuid }, { key, body: { endpoint: '192.0.2.78' } });
      },
    },
    readTunnelConfig: {
      expect: ownOrUsers(404),
      query: '?format=vyos',
      send: async (key, target) => {
        await ensureTestRouter(api);
        return api.call('readTunnelConfig', { uuid: await tunnel(target) }, { key, query: '?format=vyos' });
      },
    },
  };
}
