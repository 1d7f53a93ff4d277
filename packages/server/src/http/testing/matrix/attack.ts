/** The matrix' rows: operations on attacks and flowrules. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, ownersIn, ownOrUsers, type Row, type Rows } from '../matrix.ts';
import { propose } from '../propose.ts';
import type { HolderName } from '../world.ts';

export function attackRows({ api, world, next }: MatrixKit): Rows {
  const tell = (key: string, target: HolderName) => {
    const body = {
      source: 'elsewhere',
      external_id: `matrix-${next()}`,
      dst: world.addressOf[target],
      state: 'started',
    };
    return api.call('recordAttack', {}, { key, body });
  };
  const attack = async (target: HolderName): Promise<string> => (await tell(api.operatorKey, target)).body.uuid;
  const flowrule = async (target: HolderName) => (await propose(api.database.pool, world.addressOf[target])).uuid;
  const isOwn: Row['check'] = (reply, caller) =>
    assert.deepEqual(ownersIn(reply), [world.holders[caller as HolderName].uuid]);
  const isOfTarget: NonNullable<Row['check']> = (reply, _, target) =>
    assert.deepEqual(ownersIn(reply), ofProvider.has(target) ? [world.holders[target].uuid] : []);
  const read = (id: string, make: (target: HolderName) => Promise<string>): Row => ({
    expect: ownOrUsers(404),
    send: async (key, target) => api.call(id, { uuid: await make(target) }, { key }),
    check: (reply, _, target) => assert.deepEqual(ownersIn(reply), [world.holders[target].uuid]),
  });
  const list = (id: string, make: (target: HolderName) => Promise<string>): Row => ({
    expect: everyone,
    send: async (key, target) => {
      await make(target);
      return api.call(id, {}, { key });
    },
    check: isOwn,
  });
  const everyones: NonNullable<Row['check']> = (reply, _, target) =>
    assert.deepEqual(ownersIn(reply), [world.holders[target].uuid]);
  const providerList = (id: string, make: (target: HolderName) => Promise<string>, check = isOfTarget): Row => ({
    expect: everyone,
    send: async (key, target) => {
      await make(target);
      return api.call(id, {}, { key, query: `?user_uuid=${world.holders[target].uuid}` });
    },
    check,
  });
  const pcap = (id: string): Row => ({
    expect: ownOrUsers(404),
    send: async (key, target) => api.call(id, { uuid: await attack(target) }, { key }),
    check: (reply) => assert.equal(reply.headers.get('content-type'), 'application/vnd.tcpdump.pcap'),
  });
  return {
    listFlowrules: list('listFlowrules', flowrule),
    readFlowrule: read('readFlowrule', flowrule),
    listProviderFlowrules: providerList('listProviderFlowrules', flowrule),
    listAttacks: list('listAttacks', attack),
    readAttack: read('readAttack', attack),
    readAttackPcap: pcap('readAttackPcap'),
    listProviderAttacks: providerList('listProviderAttacks', attack),
    listAllAttacks: providerList('listAllAttacks', attack, everyones),
    readAnyAttack: { ...read('readAnyAttack', attack), expect: everyone },
    readAnyAttackPcap: { ...pcap('readAnyAttackPcap'), expect: everyone },
    recordAttack: {
      expect: everyone,
      send: tell,
      check: (reply, _, target) => assert.equal(reply.body.owner_uuid, world.holders[target].uuid),
    },
    recordFastnetmonAttack: {
      expect: everyone,
      send: (key, target) => {
        const body = {
          ip: world.addressOf[target],
          action: 'ban',
          attack_details: { attack_uuid: `matrix-${next()}` },
        };
        return api.call('recordFastnetmonAttack', {}, { key, body });
      },
      check: (reply, _, target) => assert.equal(reply.body.owner_uuid, world.holders[target].uuid),
    },
  };
}
