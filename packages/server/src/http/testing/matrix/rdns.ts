/** The matrix' rows: operations on PTR records and reverse zones. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, ownersIn, ownOnly, ownOrUsers, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

export function rdnsRows({ api, world, next }: MatrixKit): Rows {
  const record = 'mail.example.net';
  const clear = (target: HolderName) =>
    api.database.pool.query('delete from rdns_record where address = $1', [world.addressOf[target]]);
  const put = async (target: HolderName) => {
    await clear(target);
    const body = { ips: world.addressOf[target], record };
    const reply = await api.call('createRdns', {}, { key: world.holders[target].key, body });
    assert.equal(reply.status, 200, reply.text);
  };
  const zone = async (): Promise<string> => {
    const name = `${[...next().toString(16).padStart(6, '0')].join('.')}.1.d.f.ip6.arpa`;
    const body = { zone: name, driver: 'embedded' };
    return (await api.call('createRdnsZone', {}, { key: api.operatorKey, body })).body.uuid;
  };
  return {
    createRdns: {
      expect: ownOnly(403),
      send: async (key, target) => {
        await clear(target);
        return api.call('createRdns', {}, { key, body: { ips: world.addressOf[target], record } });
      },
      check: (reply, _, target) => assert.equal(reply.body.owner_uuid, world.holders[target].uuid),
    },
    updateRdns: {
      expect: ownOnly(403),
      send: async (key, target) => {
        await put(target);
        return api.call('updateRdns', {}, { key, body: { ips: world.addressOf[target], record: 'b.example.net' } });
      },
    },
    deleteRdns: {
      expect: ownOrUsers(403),
      send: async (key, target) => {
        await put(target);
        return api.call('deleteRdns', {}, { key, body: { ips: world.addressOf[target] } });
      },
      check: (reply, _, target) => assert.equal(reply.body.owner_uuid, world.holders[target].uuid),
    },
    listRdns: {
      expect: everyone,
      send: async (key, target) => {
        await put(target);
        return api.call('listRdns', {}, { key, query: `?ip=${world.addressOf[target]}` });
      },
      check: (reply, caller, target) => {
        const seen = caller === target || (caller === 'provider' && ofProvider.has(target));
        assert.deepEqual(ownersIn(reply), seen ? [world.holders[target].uuid] : []);
      },
    },
    createRdnsZone: {
      expect: everyone,
      send: (key) => {
        const name = `${[...next().toString(16).padStart(6, '0')].join('.')}.2.d.f.ip6.arpa`;
        return api.call('createRdnsZone', {}, { key, body: { zone: name, driver: 'embedded' } });
      },
    },
    listRdnsZones: { expect: everyone, send: (key) => api.call('listRdnsZones', {}, { key }) },
    readRdnsZone: { expect: everyone, send: async (key) => api.call('readRdnsZone', { uuid: await zone() }, { key }) },
    changeRdnsZone: {
      expect: everyone,
      send: async (key) => api.call('changeRdnsZone', { uuid: await zone() }, { key, body: { ttl: 60 } }),
    },
    deleteRdnsZone: {
      expect: everyone,
      send: async (key) => api.call('deleteRdnsZone', { uuid: await zone() }, { key }),
    },
  };
}
