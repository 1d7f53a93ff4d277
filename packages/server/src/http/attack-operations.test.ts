import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { transact } from '../commands/executor.ts';
import { recordDetectedAttack } from '../commands/record-detected-attack.ts';
import { detectedAttack } from '../commands/testing/detected.ts';
import { endSilentAttacks } from '../sweep/silent-attacks.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';

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
  (await api.database.pool.query(`select kind from change where object_uuid = $1`, [uuid])).rows.map(
    ({ kind }) => kind,
  );

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

test('the same report again, or one that brings nothing new, changes nothing and writes nothing', async () => {
  const report = {
    external_id: freshId(),
    state: 'started',
    started_at: '2026-02-01T00:00:00Z',
    pps: 700,
    vectors: ['udp'],
  };
  const first = await told(report);
  const undated = { external_id: report.external_id, state: 'changed', pps: 700 };
  for (const again of [report, report, undated, undated, { ...undated, vectors: ['udp'] }]) {
    assert.deepEqual(await told(again), first);
  }
  assert.deepEqual(await changesOf(first.uuid), ['attack']);
  assert.deepEqual((await read(first.uuid)).samples, [{ at: '2026-02-01T00:00:00.000Z', pps: 700 }]);
  const ended = await told({ external_id: report.external_id, state: 'ended', ended_at: '2026-02-01T00:09:00Z' });
  assert.deepEqual(
    await told({ external_id: report.external_id, state: 'ended', ended_at: '2026-02-01T00:10:00Z' }),
    ended,
  );
  assert.deepEqual(await told({ external_id: report.external_id, state: 'ended' }), ended);
  assert.deepEqual(await told(report), ended, 'an attack that ended does not begin again');
  assert.deepEqual(await changesOf(first.uuid), ['attack', 'attack']);
});

test('without an id, reports of one destination are of its ongoing attack, and another one follows its end', async () => {
  const dst = '203.0.113.8';
  const first = await told({ dst, state: 'started', pps: 10 });
  assert.equal((await told({ dst, state: 'changed', pps: 20 })).uuid, first.uuid);
  assert.notEqual((await told({ dst: '203.0.113.9', state: 'started' })).uuid, first.uuid);
  assert.notEqual((await told({ dst, source: 'another', state: 'started' })).uuid, first.uuid);
  const ended = await told({ dst, state: 'ended' });
  assert.deepEqual([ended.uuid, ended.state, ended.peak_pps], [first.uuid, 'ended', 20]);
  assert.deepEqual(await told({ dst, state: 'ended' }), ended, 'an end that is sent again');
  const second = await told({ dst, state: 'started' });
  assert.notEqual(second.uuid, first.uuid);
  assert.equal(second.state, 'ongoing');
});

test('an attack of which only the end is told is recorded as one that has ended', async () => {
  const dated = await told({ external_id: freshId(), ended_at: '2026-01-05T10:00:00Z', pps: 5 });
  assert.deepEqual(
    [dated.state, dated.started_at, dated.ended_at],
    ['ended', '2026-01-05T10:00:00.000Z', '2026-01-05T10:00:00.000Z'],
  );
  const undated = await told({ dst: '203.0.113.10', state: 'ended' });
  assert.equal(undated.state, 'ended');
  assert.ok(Date.now() - Date.parse(undated.ended_at) < 60_000);
});

test('of two that tell of an attack at the same time one makes the record, over two replicas', async () => {
  const replica = await api.openReplica();
  try {
    for (let round = 0; round < 5; round++) {
      const body = { source: 'elsewhere', dst: '203.0.113.11', external_id: freshId(), state: 'started', pps: 1 };
      const unnamed = { source: `rival-${round}`, dst: '203.0.113.11', state: 'started' };
      for (const each of [body, unnamed]) {
        const ask = { key: api.operatorKey, body: each };
        const replies = await Promise.all(
          [api.url, replica.url, api.url, replica.url].map((url) => request(url, 'POST', '/v1/operator/attack', ask)),
        );
        assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200], replies[0]?.text);
        const uuids = new Set(replies.map((reply) => reply.body.uuid));
        assert.equal(uuids.size, 1);
        assert.deepEqual(await changesOf([...uuids][0] as string), ['attack']);
      }
    }
  } finally {
    await replica.close();
  }
});

test('times that cannot be are refused by name; a clock that is a little ahead counts as now', async () => {
  const ahead = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const refused: [object, string[]][] = [
    [{ state: 'started', started_at: ahead(10) }, ['/started_at in_the_future']],
    [{ ended_at: ahead(10), at: ahead(60) }, ['/ended_at in_the_future', '/at in_the_future']],
    [{ started_at: '2026-01-02T00:00:00Z', ended_at: '2026-01-01T00:00:00Z' }, ['/ended_at start_after_end']],
    [{ state: 'changed', ended_at: '2026-01-01T00:00:00Z' }, ['/ended_at not_ended']],
    [{ state: 'started', started_at: '1969-12-31T23:59:59Z' }, ['/started_at out_of_bounds']],
    [{ state: 'started', actions: [{ action: 'blocked', at: ahead(10) }] }, ['/actions/0/at in_the_future']],
    [{}, ['/state required']],
    [{ state: 'started', source: 'levee' }, ['/source reserved']],
  ];
  for (const [body, faults] of refused) {
    const reply = await tell({ external_id: freshId(), ...body });
    const found = reply.body.details.map(({ field, code }: { field: string; code: string }) => `${field} ${code}`);
    assert.deepEqual([reply.status, found], [400, faults], reply.text);
  }
  const attack = await told({ external_id: freshId(), state: 'started', started_at: ahead(4), pps: 1 });
  assert.ok(Date.parse(attack.started_at) <= Date.now());
});

test('an end that another clock puts before the start is taken as an end at once', async () => {
  const external_id = freshId();
  await told({ external_id, state: 'started', started_at: '2026-03-01T10:00:00Z' });
  const ended = await told({ external_id, ended_at: '2026-03-01T09:59:58Z' });
  assert.deepEqual([ended.started_at, ended.ended_at], ['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00.000Z']);
});

test('an attack belongs to the user that holds all of the destination, else to the provider, else it is refused', async () => {
  const ownerOf = async (dst: string) => (await told({ external_id: freshId(), dst, state: 'started' })).owner_uuid;
  assert.equal(await ownerOf('203.0.113.0/28'), user.uuid);
  assert.equal(await ownerOf('2001:db8:7:5::/64'), user.uuid);
  assert.equal(await ownerOf('203.0.113.0/27'), provider.uuid, 'carpet bombing beyond the user');
  assert.equal(await ownerOf('203.0.113.77'), provider.uuid);
  for (const dst of ['192.0.2.1', '203.0.112.0/23']) {
    const reply = await tell({ external_id: freshId(), dst, state: 'started' });
    assert.deepEqual([reply.status, reply.body.field, reply.body.details[0].code], [400, '/dst', 'not_protected']);
    assert.match(
      reply.body.message,
      new RegExp(`no provider of this installation holds ${dst.replaceAll('.', '\\.')}`),
    );
  }
});

test('an identifier that is of an attack on another destination is a conflict', async () => {
  const external_id = freshId();
  await told({ external_id, dst: '203.0.113.7', state: 'started' });
  const reply = await tell({ external_id, dst: '203.0.113.6', state: 'changed' });
  assert.deepEqual([reply.status, reply.body.field], [409, '/external_id']);
});

test('an attack stays with who held the address when the addresses go to another user', async () => {
  const first = await api.user(provider, ['203.0.113.32/30']);
  const external_id = freshId();
  const attack = await told({ external_id, dst: '203.0.113.33', state: 'started' });
  const second = await handOver(first, ['203.0.113.32/30']);
  assert.equal((await told({ external_id, dst: '203.0.113.33', state: 'ended' })).owner_uuid, first.uuid);
  assert.equal((await read(attack.uuid, first.key)).state, 'ended');
  assert.deepEqual((await api.call('listAttacks', {}, { key: second.key })).body, []);
  assert.equal((await api.call('readAttack', { uuid: attack.uuid }, { key: second.key })).status, 404);
});

async function handOver(from: Holder, ips: string[]): Promise<Holder> {
  const gone = await api.call('deleteUserIps', {}, { key: provider.key, body: { user_uuid: from.uuid, ips } });
  assert.equal(gone.status, 200, gone.text);
  return api.user(provider, ips);
}

test('what is told after the addresses changed hands is a record of its present holder, with or without an id', async () => {
  let host = 96;
  for (const external_id of [undefined, freshId()]) {
    const dst = `203.0.113.${host++}`;
    const bob = await api.user(provider, [dst]);
    const report = { dst, state: 'started', pps: 1000, ...(external_id !== undefined && { external_id }) };
    const his = await told(report);
    const alice = await handOver(bob, [dst]);
    const again = { ...report, state: 'changed', pps: 5000, vectors: ['syn'], started_at: his.started_at };
    const hers = await told(again);
    assert.deepEqual([hers.owner_uuid, hers.state, hers.peak_pps], [alice.uuid, 'ongoing', 5000]);
    assert.ok(hers.started_at > his.started_at, 'it begins for her when she had the address');
    assert.equal((await told({ ...again, pps: 6000 })).uuid, hers.uuid);
    const [before] = (await api.call('listAttacks', {}, { key: bob.key })).body;
    assert.deepEqual(
      [before.uuid, before.state, before.end_reason, before.ended_at, before.peak_pps, before.vectors],
      [his.uuid, 'ended', 'holder_changed', his.started_at, 1000, []],
    );
    const listed = (await api.call('listAttacks', {}, { key: alice.key })).body;
    assert.deepEqual([listed.length, listed[0].uuid, listed[0].peak_pps], [1, hers.uuid, 6000]);
    const audited = await api.database.pool.query(
      `select object_uuid::text as uuid from audit where object_uuid = any($1::uuid[]) order by sequence`,
      [[his.uuid, hers.uuid]],
    );
    assert.deepEqual(
      audited.rows.map(({ uuid }) => (uuid === his.uuid ? 'his' : 'hers')),
      ['his', 'hers', 'his', 'hers'],
    );
    assert.equal((await told({ ...report, state: 'ended' })).uuid, hers.uuid);
  }
});

test('a dated start long after the last word of an attack is another one; a late end goes to the one that it is of', async () => {
  const dst = '203.0.113.14';
  const first = await told({ dst, state: 'started', started_at: '2026-01-01T00:00:00Z', vectors: ['udp'] });
  const second = await told({ dst, state: 'started', started_at: '2026-01-20T00:00:00Z' });
  assert.notEqual(second.uuid, first.uuid);
  const silent = await read(first.uuid);
  assert.deepEqual([silent.state, silent.end_reason, silent.ended_at], ['ended', 'another_began', first.started_at]);
  const ended = await told({ dst, ended_at: '2026-01-01T01:30:00Z' });
  assert.deepEqual(
    [ended.uuid, ended.ended_at, ended.end_reason],
    [first.uuid, '2026-01-01T01:30:00.000Z', 'reported'],
  );
  assert.deepEqual(await told({ dst, ended_at: '2026-01-01T01:30:00Z' }), ended, 'sent again');
  assert.equal((await read(second.uuid)).state, 'ongoing');
  assert.deepEqual(await changesOf(first.uuid), ['attack', 'attack', 'attack']);
});

test('the reports of several attacks leave the same records in any order, sent twice or not', async () => {
  const reports = [
    { started_at: '2026-02-01T00:00:00Z', vectors: ['udp'], pps: 10 },
    { state: 'changed', started_at: '2026-02-01T00:00:00Z', at: '2026-02-01T00:20:00Z', pps: 90, vectors: ['syn'] },
    { ended_at: '2026-02-01T00:30:00Z' },
    { started_at: '2026-02-03T00:00:00Z', pps: 20 },
    { started_at: '2026-02-05T00:00:00Z', vectors: ['icmp'], pps: 30 },
    { ended_at: '2026-02-05T00:30:00Z' },
  ];
  const orders = [
    [0, 1, 2, 3, 4, 5],
    [5, 4, 3, 2, 1, 0],
    [5, 0, 3, 4, 2, 1],
    [2, 5, 0, 4, 3, 1],
    [3, 0, 5, 1, 4, 2],
    [0, 5, 0, 4, 3, 2, 1, 5, 2, 0, 3],
    [2, 1, 2, 5, 5, 3, 0, 3, 4],
  ];
  for (const order of orders) {
    const source = `orders-${freshId()}`;
    for (const index of order) await told({ source, dst: '203.0.113.15', ...reports[index] });
    const { rows } = await api.database.pool.query(
      `select to_char(started_at at time zone 'UTC', 'DD HH24:MI') as started, to_char(ended_at at time zone 'UTC', 'DD HH24:MI')
        as ended, end_reason, array(select unnest(vectors) order by 1) as vectors, peak_pps
        from attack where source = $1 order by started_at`,
      [source],
    );
    assert.deepEqual(
      rows.map((row) => [row.started, row.ended, row.end_reason, row.vectors.join(), Number(row.peak_pps)]),
      [
        ['01 00:00', '01 00:30', 'reported', 'syn,udp', 90],
        ['03 00:00', '03 00:00', 'another_began', '', 20],
        ['05 00:00', '05 00:30', 'reported', 'icmp', 30],
      ],
      `${order}`,
    );
  }
});

test('an attack of the detectors here is ended when one has been there for a quarter of an hour and none told of it', async () => {
  const { pool } = api.database;
  const detected = detectedAttack('203.0.113.14', Date.now() - 7_200_000);
  const recorded = await transact(pool, (executor) => recordDetectedAttack(executor, detected, new Date()));
  assert.ok(recorded.ok);
  const { uuid } = recorded.value;
  const silentFor = (minutes: number) =>
    pool.query(`update attack set last_reported_at = now() - make_interval(mins => $2) where uuid = $1`, [
      uuid,
      minutes,
    ]);
  const detector = (seen: string, since: string) =>
    pool.query(`update detector set last_seen_at = now() - $1::interval, seen_since = now() - $2::interval`, [
      seen,
      since,
    ]);
  const { status } = await api.call('createDetector', {}, { key: api.operatorKey, body: { name: 'watching' } });
  assert.equal(status, 200);
  for (const [minutes, seen, since] of [
    [14, '0 s', '1 day'],
    [60, '2 min', '1 day'],
    [60, '0 s', '14 min'],
  ] as const) {
    await silentFor(minutes);
    await detector(seen, since);
    assert.equal(await endSilentAttacks(pool), 0, `${minutes} ${seen} ${since}`);
  }
  await silentFor(16);
  await detector('10 s', '16 min');
  assert.equal(await endSilentAttacks(pool), 1);
  const ended = await read(uuid);
  assert.deepEqual([ended.state, ended.end_reason], ['ended', 'silent']);
  const later = { ...detected, phase: 'changed' as const, measured: { ...detected.measured, at_ms: Date.now() } };
  assert.ok((await transact(pool, (executor) => recordDetectedAttack(executor, later, new Date()))).ok);
  assert.equal((await read(uuid)).state, 'ongoing', 'what is told later stands instead');
});

test('an attack that its source has been silent about for a day is ended by the service, and goes on when told so', async () => {
  const dst = '203.0.113.12';
  const attack = await told({ dst, state: 'started', pps: 7 });
  const heard = await told({ dst: '203.0.113.13', state: 'started', pps: 7 });
  assert.ok(Date.now() - Date.parse(attack.last_reported_at) < 60_000);
  await api.database.pool.query(
    `update attack set last_reported_at = now() - interval '24 hours 1 minute' where uuid = any($1::uuid[])`,
    [[attack.uuid, heard.uuid]],
  );
  // A report without news is a word of it all the same.
  const repeated = await told({ dst: '203.0.113.13', state: 'changed', pps: 7 });
  assert.ok(Date.now() - Date.parse(repeated.last_reported_at) < 60_000);
  assert.equal(await endSilentAttacks(api.database.pool), 1);
  const silent = await read(attack.uuid);
  assert.deepEqual([silent.state, silent.end_reason, silent.ended_at], ['ended', 'silent', attack.started_at]);
  assert.deepEqual(await changesOf(attack.uuid), ['attack', 'attack']);
  const { rows } = await api.database.pool.query(
    `select operation, after->>'end_reason' as reason from audit where object_uuid = $1 order by sequence`,
    [attack.uuid],
  );
  assert.deepEqual(rows.at(-1), { operation: 'silence', reason: 'silent' });
  assert.equal((await read(heard.uuid)).state, 'ongoing');
  const back = await told({ dst, state: 'changed', pps: 8 });
  assert.deepEqual(
    [back.uuid, back.state, back.ended_at, back.end_reason],
    [attack.uuid, 'ongoing', undefined, undefined],
  );
});

test('the read of one attack shows what was told last of each thing, and nothing that nobody told', async () => {
  const external_id = freshId();
  const { uuid } = await told({
    external_id,
    state: 'started',
    descr: 'a flood',
    top_sources: [{ source: '198.51.100.9/32', share: 0.4 }],
    threshold: { metric: 'pps', value: 1000, observed: 9000 },
    actions: [{ action: 'announced', at: '2026-01-31T12:00:01Z' }],
  });
  await told({
    external_id,
    state: 'changed',
    top_ports: { src: [{ port: 53, packets: 12 }] },
    timings: { detect_ms: 240 },
  });
  await told({ external_id, state: 'changed', top_sources: [{ source: '198.51.100.0/24' }], packets: 5, bytes: 600 });
  const attack = await read(uuid);
  const known = Object.fromEntries(
    ['descr', 'packets', 'bytes', 'threshold', 'top_sources', 'top_ports', 'actions', 'timings'].map((name) => [
      name,
      attack[name],
    ]),
  );
  assert.deepEqual(known, {
    descr: 'a flood',
    packets: 5,
    bytes: 600,
    threshold: { metric: 'pps', value: 1000, observed: 9000 },
    top_sources: [{ source: '198.51.100.0/24' }],
    top_ports: { src: [{ port: 53, packets: 12 }] },
    actions: [{ action: 'announced', at: '2026-01-31T12:00:01.000Z' }],
    timings: { detect_ms: 240 },
  });
  const { uuid: bare } = await told({ external_id: freshId(), state: 'started' });
  const names = Object.keys(await read(bare));
  assert.ok(!names.includes('top_sources') && !names.includes('ended_at') && !names.includes('descr'), `${names}`);
  const malformed = await tell({
    external_id,
    state: 'changed',
    top_sources: [{ source: '1.2.3' }, { source: '::1%lo' }],
  });
  assert.deepEqual(
    malformed.body.details.map(({ field }: { field: string }) => field),
    ['/top_sources/0/source', '/top_sources/1/source'],
  );
});

test('lists are filtered by state and destination, and come in pages', async () => {
  const someone = await api.user(provider, ['203.0.113.48/29']);
  for (const offset of [0, 1, 2, 3, 4]) {
    const dst = `203.0.113.${48 + offset}`;
    await told({ external_id: freshId(), dst, state: offset % 2 === 0 ? 'started' : 'ended' });
  }
  const list = async (query: string, id = 'listAttacks', key = someone.key) => api.call(id, {}, { key, query });
  const addresses = (reply: Reply) => reply.body.map(({ dst }: { dst: string }) => Number(dst.split('.')[3]) - 48);
  assert.deepEqual(addresses(await list('')), [0, 1, 2, 3, 4]);
  assert.deepEqual(addresses(await list('?state=ended')), [1, 3]);
  assert.deepEqual(addresses(await list('?dst=203.0.113.50/31')), [2, 3]);
  const first = await list('?limit=2');
  assert.deepEqual(addresses(first), [0, 1]);
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1]?.split('?')[1];
  assert.deepEqual(addresses(await list(`?${next}`)), [2, 3]);
  const ofProvider = await list(`?user_uuid=${someone.uuid}&state=ongoing`, 'listProviderAttacks', provider.key);
  assert.deepEqual(addresses(ofProvider), [0, 2, 4]);
  assert.equal((await list('?state=active')).status, 400);
});
