import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { filterCreate } from '@levee/contract/schemas/filter.ts';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import fc from 'fast-check';
import { mostFiltersOfDestination } from '../commands/create-filter.ts';
import { sweepOnce } from '../sweep/sweeper.ts';
import { compileBodyCheck } from './schema-check.ts';
import { type ApiFixture, type Ask, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api?.stop());

const byUser = (ask: Ask = {}): Ask => ({ key: user.key, ...ask });
const minimal = { dst: '203.0.113.7', filter: 20 };

async function create(body: object, key = user.key) {
  const reply = await api.call('createFilter', {}, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

test('a created filter is answered as canonicalised, with defaults, and reads back the same', async () => {
  const body = {
    ratelimit: 25000,
    port: { src: { start: 1024, end: 65535 }, dst: { start: 51820 } },
    src: { start: '2001:DB8:ffff:0::', end: '2001:db8:ffff::ffff' },
    filter: 20,
    dst: '2001:DB8:7:0:0:0:0:1/128',
    expires_at: '2099-01-01T00:00:00+01:00',
  };
  const created = await create(body);
  const { uuid, owner_uuid, state, applied, created_at, updated_at, state_reason, hits, ...fields } = created;
  assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(owner_uuid, user.uuid);
  assert.deepEqual([state, applied, updated_at], ['pending', [], created_at]);
  assert.match(state_reason, /router/i);
  assert.deepEqual(hits, { packets: 0, bytes: 0 });
  assert.deepEqual(fields, {
    ...body,
    dst: '2001:db8:7::1',
    priority: 1000,
    src: { start: '2001:db8:ffff::', end: '2001:db8:ffff::ffff' },
    expires_at: '2098-12-31T23:00:00.000Z',
  });
  const read = await api.call('readFilter', { uuid: uuid.toUpperCase() }, byUser());
  assert.deepEqual(read.body, [created]);
});

test('one destination has at most 32 filters, however many are created at once; others and deleted ones do not count', async () => {
  const crowded = { dst: '203.0.113.13', filter: 20 };
  const replies = await Promise.all(
    Array.from({ length: 40 }, () => api.call('createFilter', {}, byUser({ body: crowded }))),
  );
  const refused = replies.filter(({ status }) => status !== 200);
  assert.equal(refused.length, 40 - mostFiltersOfDestination);
  for (const { status, body } of refused) {
    assert.deepEqual([status, body.error], [429, 'quota_exceeded']);
    assert.equal(body.details[0].field, '/dst');
    assert.match(body.details[0].message, /203\.0\.113\.13 has 32 filters/);
  }
  await create({ ...crowded, dst: '203.0.113.14' });
  await create({ ...crowded, dst: '203.0.113.12/30' });
  const made = replies.find(({ status }) => status === 200);
  await api.call('deleteFilter', { uuid: made?.body.uuid }, byUser());
  await create(crowded);
});

test('all problems of a body are told at once, each with its field, and nothing is stored', async () => {
  const before = (await api.call('listFilters', {}, byUser())).body.length;
  const body = {
    dst: '203.0.113.7/24',
    filter: 'wireguard',
    priority: 0,
    src: { start: 'nowhere' },
    port: { dst: { start: 70_000 } },
    ratelimit: 25_001,
    colour: 'red',
    expires_at: '2001-01-01T00:00:00Z',
  };
  const reply = await api.call('createFilter', {}, byUser({ body }));
  assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed']);
  const messages = new Map<string, string>(
    reply.body.details.map(({ field, message }: { field: string; message: string }) => [field, message]),
  );
  const wrong = [
    '/dst',
    '/filter',
    '/priority',
    '/src/start',
    '/port/dst/start',
    '/ratelimit',
    '/colour',
    '/expires_at',
  ];
  assert.deepEqual([...messages.keys()].sort(), wrong.sort());
  assert.match(messages.get('/filter') ?? '', /did you mean 20 \(wireguard\)\?/);
  assert.match(messages.get('/colour') ?? '', /allowed are dst, filter, priority, src, port, ratelimit, expires_at/);
  assert.equal((await api.call('listFilters', {}, byUser())).body.length, before);
});

test('a body that is missing, or no object, is refused with what is needed', async () => {
  for (const body of [undefined, null, [], 'text', 7]) {
    const reply = await api.call('createFilter', {}, byUser({ body }));
    assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed'], JSON.stringify(body));
  }
});

test("an address outside the caller's is refused with what is allowed, also where a user holds a provider's address", async () => {
  const foreign = await api.call('createFilter', {}, byUser({ body: { ...minimal, dst: '203.0.113.0/24' } }));
  assert.deepEqual([foreign.status, foreign.body.error, foreign.body.field], [403, 'ip_not_allowed', '/dst']);
  assert.match(foreign.body.message, /203\.0\.113\.0\/24.*user's subnets/);
  const held = await api.call('createFilter', {}, { key: provider.key, body: minimal });
  assert.deepEqual([held.status, held.body.error], [403, 'ip_not_allowed']);
  const own = await create({ ...minimal, dst: '203.0.113.100' }, provider.key);
  assert.equal(own.owner_uuid, provider.uuid);
});

test('deleting marks, answers so, and is no error the second time; the filter is gone once nothing holds it', async () => {
  const { uuid } = await create(minimal);
  for (let time = 0; time < 2; time++) {
    const reply = await api.call('deleteFilter', { uuid: uuid.toUpperCase() }, byUser());
    assert.deepEqual(reply.body, {
      uuid,
      state: 'marked_for_deletion',
      message: 'The filter is marked for deletion.',
    });
  }
  const { body } = await api.call('readFilter', { uuid }, byUser());
  assert.equal(body[0].state, 'marked_for_deletion');
  const { rows } = await api.database.pool.query(
    `select (select array_agg(kind) from change where object_uuid = $1) as kinds,
      (select array_agg(operation order by operation) from audit where object_uuid = $1) as audited`,
    [uuid],
  );
  assert.deepEqual(rows[0], { kinds: ['filter', 'filter'], audited: ['createFilter', 'deleteFilter'] });
  await sweepOnce(api.database.pool);
  assert.equal((await api.call('readFilter', { uuid }, byUser())).status, 404);
  assert.equal((await api.call('deleteFilter', { uuid }, byUser())).status, 404);
});

test('lists are narrowed by destination, state and owner, and come in pages that lead on', async () => {
  const holder = await api.user(provider, ['203.0.113.32/28']);
  const dsts = ['203.0.113.32/28', '203.0.113.33', '203.0.113.34', '203.0.113.32/30'];
  const made: string[] = [];
  for (const dst of dsts) made.push((await create({ dst, filter: 3 }, holder.key)).uuid);
  const list = async (id: string, key: string, query: string) => {
    const reply = await api.call(id, {}, { key, query });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.map((filter: { uuid: string }) => filter.uuid);
  };
  assert.deepEqual(await list('listFilters', holder.key, ''), made);
  assert.deepEqual(await list('listFilters', holder.key, '?dst=203.0.113.33'), [made[0], made[1], made[3]]);
  assert.deepEqual(await list('listProviderFilters', provider.key, `?user_uuid=${holder.uuid}`), made);
  assert.equal((await list('listProviderFilters', provider.key, `?user_uuid=${user.uuid}`)).includes(made[0]), false);

  await api.call('deleteFilter', { uuid: made[1] ?? '' }, { key: holder.key });
  assert.deepEqual(await list('listFilters', holder.key, '?state=marked_for_deletion'), [made[1]]);
  assert.deepEqual(await list('listFilters', holder.key, '?state=pending'), [made[0], made[2], made[3]]);
  const disabled = await api.call('listFilters', {}, { key: holder.key, query: '?state=disabled' });
  assert.deepEqual([disabled.status, disabled.body.field], [400, '?state']);

  const paged: string[] = [];
  let query = '?limit=3';
  for (;;) {
    const reply = await api.call('listFilters', {}, { key: holder.key, query });
    paged.push(...reply.body.map((filter: { uuid: string }) => filter.uuid));
    const next = /<[^?]*(\?[^>]*)>; rel="next"/.exec(reply.headers.get('link') ?? '')?.[1];
    if (next === undefined) break;
    query = next;
  }
  assert.deepEqual(paged, made);
});

test('a repeated request under one key makes one filter, on any replica', async () => {
  const replica = await api.openReplica();
  try {
    const body = { ...minimal, dst: '203.0.113.9' };
    const headers = { 'idempotency-key': 'one-filter' };
    const urls = [api.url, replica.url, api.url];
    const replies = await Promise.all(
      urls.map(async (url) => {
        const response = await fetch(`${url}/v1/filter`, {
          method: 'POST',
          headers: { 'x-api-key': user.key, 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        });
        assert.equal(response.status, 200);
        return response.text();
      }),
    );
    assert.equal(new Set(replies).size, 1);
    const { body: listed } = await api.call('listFilters', {}, byUser({ query: '?dst=203.0.113.9' }));
    assert.equal(listed.length, 1);
  } finally {
    await replica.close();
  }
});

test('a filter and the loss of its addresses at the same moment: no filter stays outside what its owner holds', async () => {
  const dsts = Array.from({ length: 12 }, (_, n) => `203.0.113.${64 + n}`);
  const holder = await api.user(provider, dsts);
  await Promise.all(
    dsts.flatMap((dst) => [
      api.call('createFilter', {}, { key: holder.key, body: { dst, filter: 20 } }),
      api.call('deleteUserIps', {}, { key: provider.key, body: { user_uuid: holder.uuid, ips: [dst] } }),
    ]),
  );
  const { rows } = await api.database.pool.query(
    'select count(*)::int as live from filter where owner_uuid = $1 and deletion_marked_at is null',
    [holder.uuid],
  );
  assert.equal(rows[0].live, 0);
});

test('the catalogue says of every kind what a form needs, the same to everyone', async () => {
  const { body: kinds, headers } = await api.call('listFilterKinds', {}, byUser());
  assert.deepEqual(
    kinds.map(({ id, name }: { id: number; name: string }) => [id, name]),
    filterKinds.map(({ id, name }) => [id, name]),
  );
  const fieldsOf = (name: string) => kinds.find((kind: { name: string }) => kind.name === name).fields;
  const names = (name: string) => fieldsOf(name).map((field: { name: string }) => field.name);
  assert.deepEqual(names('icmp-limit'), ['dst', 'ratelimit', 'src', 'priority', 'expires_at']);
  const required = (name: string) =>
    fieldsOf(name).flatMap((field: { name: string; required: boolean }) => (field.required ? field.name : []));
  assert.deepEqual(required('wireguard'), ['dst']);
  assert.deepEqual(required('rtp'), ['dst', 'port.dst']);
  const samp = kinds.find((kind: { name: string }) => kind.name === 'samp');
  assert.deepEqual([samp.families, samp.shortest_prefix], [['ipv4'], { ipv4: 24 }]);
  for (const [id, key] of [
    ['listFilterKinds', api.operatorKey],
    ['listProviderFilterKinds', provider.key],
  ] as const) {
    assert.deepEqual((await api.call(id, {}, { key })).body, kinds);
  }
  const tag = headers.get('etag') ?? '';
  const again = await api.raw('GET', '/v1/filter/kind', byUser({ headers: { 'if-none-match': tag } }));
  assert.deepEqual([again.status, again.text], [304, '']);
});

const check = compileBodyCheck(filterCreate);

test('what the published schema refuses, the parser refuses too: the document promises nothing false', () => {
  const odd = fc.oneof(fc.constantFrom(null, '', 'x', -1, 0, 1.5, 65536, true, [], {}), fc.jsonValue());
  const optional = <T>(usual: fc.Arbitrary<T>) =>
    fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      { weight: 5, arbitrary: usual },
      { weight: 1, arbitrary: odd },
    );
  const port = fc.record({ start: fc.integer({ min: 0, max: 65535 }) });
  const bodies = fc
    .record({
      dst: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom('203.0.113.7', '203.0.113.0/24') },
        { weight: 1, arbitrary: odd },
      ),
      filter: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 30 }) }, { weight: 1, arbitrary: odd }),
      priority: optional(fc.integer({ min: 1, max: 2147483647 })),
      src: optional(fc.constant({ start: '192.0.2.1' })),
      port: optional(fc.record({ src: port, dst: port }, { requiredKeys: [] })),
      ratelimit: optional(fc.integer({ min: 1, max: 25_000 })),
    })
    .map((body) => JSON.parse(JSON.stringify(body)) as object);
  let accepted = 0;
  fc.assert(
    fc.property(bodies, (body) => {
      const parsed = parseFilter(body, { uuid: 'u', sequence: 1 });
      if (!parsed.ok) return;
      accepted++;
      assert.deepEqual(check(body), [], JSON.stringify(body));
      assert.deepEqual(check(parsed.canonical), [], JSON.stringify(parsed.canonical));
    }),
    { numRuns: 2000 },
  );
  assert.ok(accepted > 100, `only ${accepted} bodies were accepted`);
});

test('explain tells of filters behind rules, and of those of others only that they are there', async () => {
  const dst = '203.0.113.11';
  const filter = await create({ dst, filter: 22 });
  const explain = async (key: string, payload?: string, address = dst) => {
    const body = { dst: address, src: '192.0.2.1', protocol: 'udp', port: { src: 40000, dst: 53 }, payload };
    const reply = await api.call('explainPacket', {}, { key, body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const question = Buffer.from('4d3101000001000000000000076578616d706c6503636f6d0000010001', 'hex');
  const passed = await explain(user.key, question.toString('base64'));
  assert.deepEqual(passed, {
    verdict: 'accept',
    decided_by: 'default',
    trail: [
      {
        uuid: filter.uuid,
        priority: 1000,
        filter: 22,
        kind: 'dns',
        matched: true,
        code: 'passed',
        message: 'the packet passes: a DNS question',
      },
    ],
  });
  const noQuestion = Buffer.from('no question').toString('base64');
  const dropped = await explain(user.key, noQuestion);
  assert.deepEqual([dropped.verdict, dropped.decided_by], ['drop', filter.uuid]);
  assert.equal((await explain(user.key)).trail[0].code, 'undecided');
  // A filter of the provider's own over a grant given later: the user meets it and may not read it.
  const held = await create({ dst: '203.0.113.241', filter: 22 }, provider.key);
  const late = await api.user(provider, ['203.0.113.241']);
  const met = await explain(late.key, noQuestion, '203.0.113.241');
  assert.deepEqual([met.verdict, met.decided_by], ['drop', 'other']);
  assert.doesNotMatch(JSON.stringify(met), new RegExp(held.uuid));
  // Marked for deletion: routers are told to let it go.
  await api.call('deleteFilter', { uuid: filter.uuid }, byUser());
  assert.deepEqual((await explain(user.key, noQuestion)).trail, []);
});
