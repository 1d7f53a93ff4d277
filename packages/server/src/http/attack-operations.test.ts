import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api.stop());

let made = 0;
const tell = (body: object): Promise<Reply> =>
  api.call('recordAttack', {}, { key: api.operatorKey, body: { source: 'elsewhere', dst: '203.0.113.7', ...body } });
const told = async (body: object) => {
  const reply = await tell(body);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};
const freshId = () => `incident-${++made}`;
const read = async (uuid: string, key = user.key) => (await api.call('readAttack', { uuid }, { key })).body[0];
const changesOf = async (uuid: string) =>
  (await api.database.pool.query(`select kind from change where object_uuid = $1`, [uuid])).rows.map(({ kind }) => kind);

test('start, change and end of an attack are one record, in whatever order they arrive', async () => {
  const reports = [
    { state: 'started', started_at: '2026-01-31T12:00:00Z', vectors: ['udp'], pps: 1000 },
    { state: 'changed', at: '2026-01-31T12:01:00Z', vectors: ['syn'], pps: 9000, bps: 72_000_000, mitigation: 'edge' },
    { state: 'ended', started_at: '2026-01-31T12:00:00Z', ended_at: '2026-01-31T12:05:00Z' },
  ];
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];
  for (const order of orders) {
    const external_id = freshId();
    const uuids = new Set<string>();
    for (const index of order) uuids.add((await told({ external_id, ...reports[index] })).uuid);
    assert.equal(uuids.size, 1, `${order}`);
    const attack = await read([...uuids][0] as string);
    assert.deepEqual(
      [attack.state, attack.started_at, attack.ended_at, attack.vectors.toSorted(), attack.peak_pps, attack.peak_bps],
      ['ended', '2026-01-31T12:00:00.000Z', '2026-01-31T12:05:00.000Z', ['syn', 'udp'], 9000, 72_000_000],
      `${order}`,
    );
    assert.equal(attack.mitigation, 'edge');
    assert.equal(attack.owner_uuid, user.uuid);
  }
});
