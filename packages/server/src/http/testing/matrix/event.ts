/** The matrix' rows: the stream of events. Test code only. */
import assert from 'node:assert/strict';
import { newUuid } from '../../../store/new-uuid.ts';
import { type CallerName, everyone, type MatrixKit, ofProvider, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

const sees = (caller: CallerName, target: HolderName) =>
  caller === 'operator' || caller === target || (caller === 'provider' && ofProvider.has(target));

export function eventRows({ api, world }: MatrixKit): Rows {
  const { strangerProvider } = world.holders;
  const providerOf = (target: HolderName) =>
    target === 'stranger' || target === 'strangerProvider' ? strangerProvider : world.holders.provider;
  return {
    readEvents: {
      expect: everyone,
      send: async (key, target) => {
        const object = newUuid();
        const owner_uuid = world.holders[target].uuid;
        await api.database.pool.query(
          `insert into event_log (epoch, log, xid, position) values ('0badcafe', 'test', '1', 0) on conflict do nothing`,
        );
        const { rows } = await api.database.pool.query<{ before: number }>(
          `insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
            values ('attack.started', $1, $2, $3, $4)
            returning sequence - 1 as before`,
          [object, owner_uuid, providerOf(target).uuid, JSON.stringify({ uuid: object, owner_uuid })],
        );
        return api.call('readEvents', {}, { key, query: `?after=0badcafe-${rows[0]?.before}` });
      },
      check: (reply, caller, target) => {
        const told = reply.text.includes(`"owner_uuid":"${world.holders[target].uuid}"`);
        assert.equal(told, sees(caller, target), reply.text);
      },
    },
  };
}
