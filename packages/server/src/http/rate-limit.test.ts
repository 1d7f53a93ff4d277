import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { KEY_RANDOM_BYTES, makeKey } from '@levee/core/account/key.ts';
import { createBuckets, createRateLimits, guessesPerMinute } from './rate-limit.ts';
import { type ApiFixture, type Holder, request, startApi } from './testing/api-fixture.ts';

/** Requests a minute of a key without a limit of its own. */
const usual = 1000;
let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi({ rateLimit: usual });
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
});
after(() => api.stop());

const whoAmI = (key: string) => api.call('whoAmI', {}, { key });

test('every answer to a valid key says how it stands, refusals too, and others do not', async () => {
  const good = await whoAmI(user.key);
  assert.equal(good.headers.get('ratelimit-policy'), `"default";q=${usual};w=60`);
  const [, remaining] = /^"default";r=(\d+);t=(\d+)$/.exec(good.headers.get('ratelimit') ?? '') ?? [];
  assert.ok(Number(remaining) > 0 && Number(remaining) < usual);
  for (const [id, ask, status] of [
    ['createUser', { key: user.key, body: {} }, 403],
    ['createFirewallRule', { key: user.key, body: {} }, 400],
    ['readFirewallRule', { key: user.key }, 404],
  ] as const) {
    const refused = await api.call(id, { uuid: 'x' }, ask);
    assert.equal(refused.status, status);
    assert.match(refused.headers.get('ratelimit') ?? '', /^"default";r=\d+;t=\d+$/);
  }
  const unknown = await api.call('whoAmI', {}, {});
  assert.deepEqual([unknown.status, unknown.headers.get('ratelimit')], [401, null]);
});

test('a key with a limit of its own makes that many requests at once, then is told when to come again', async () => {
  const key = await api.key(user.uuid, { rate_limit: 3 });
  const left: (string | null)[] = [];
  for (let sent = 0; sent < 3; sent++) {
    const reply = await whoAmI(key);
    assert.deepEqual([reply.status, reply.body.api_key.rate_limit], [200, 3]);
    left.push(reply.headers.get('ratelimit')?.slice(0, 13) ?? null);
  }
  assert.deepEqual(left, ['"default";r=2', '"default";r=1', '"default";r=0']);
  const refused = await whoAmI(key);
  assert.deepEqual([refused.status, refused.body.error], [429, 'rate_limited']);
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait >= 19 && wait <= 20, `one in twenty seconds, after ${wait}`);
  assert.equal((await whoAmI(user.key)).status, 200, 'another key of the account goes on');
});

test('what a refused request asked for is not done', async () => {
  const key = await api.key(user.uuid, { rate_limit: 1 });
  const body = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  assert.equal((await api.call('createFirewallRule', {}, { key, body })).status, 200);
  assert.equal((await api.call('createFirewallRule', {}, { key, body })).status, 429);
  assert.equal((await api.call('listFirewallRules', {}, { key: user.key })).body.length, 1);
});

test('a key gives another no more requests than it has itself; an operator gives what it wants to', async () => {
  const narrow = await api.key(provider.uuid, { rate_limit: 50 });
  const make = (key: string, more: object) => api.call('createApiKey', {}, { key, body: { name: 'made', ...more } });
  assert.equal((await make(narrow, { rate_limit: 50 })).body.rate_limit, 50);
  for (const more of [{ rate_limit: 51 }, {}]) {
    const refused = await make(narrow, more);
    assert.deepEqual([refused.status, refused.body.details.length], [400, 1]);
    assert.deepEqual([refused.body.field, refused.body.details[0].code], ['/rate_limit', 'wider_than_own']);
  }
  assert.equal((await make(user.key, {})).status, 200);
  assert.equal((await make(user.key, { rate_limit: usual })).status, 200);
  assert.equal((await make(user.key, { rate_limit: usual + 1 })).body.field, '/rate_limit');
  assert.equal((await make(api.operatorKey, { rate_limit: 1_000_000 })).status, 200);
  for (const rate_limit of [0, 1_000_001, 1.5, '7']) {
    assert.equal((await make(api.operatorKey, { rate_limit })).body.field, '/rate_limit');
  }
});

test('an address that tries too many invalid keys is told to wait, and good keys from it go on, also ones never seen', async () => {
  const guess = () => makeKey('user', randomBytes(KEY_RANDOM_BYTES));
  const statuses: number[] = [];
  for (let tried = 0; tried <= guessesPerMinute + 20; tried++) {
    // Of the right form or not: both count.
    statuses.push((await whoAmI(tried % 2 === 0 ? guess() : 'nonsense')).status);
  }
  const allowed = statuses.indexOf(429);
  assert.ok(allowed >= guessesPerMinute && allowed <= guessesPerMinute + 5, `refused after ${allowed}`);
  const refused = await whoAmI(guess());
  assert.deepEqual([refused.status, refused.body.error], [429, 'rate_limited']);
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal((await whoAmI(user.key)).status, 200);
  for (let used = 0; used < 10; used++) {
    // As many guesses as there is room for, and one more, before each: never a moment of rest.
    for (let tried = 0; (await whoAmI(guess())).status === 401; tried++) assert.ok(tried < 5);
    assert.equal((await whoAmI(await api.key(user.uuid))).status, 200);
  }
});

test('a good key from a source that it may not be used from, or past its end, counts as an invalid one', async () => {
  const elsewhere = await api.key(user.uuid, { sources: ['192.0.2.0/24'] });
  const ended = await api.key(user.uuid, { expires_at: new Date(Date.now() + 3_600_000).toISOString() });
  await api.database.pool.query('update api_key set expires_at = now() where expires_at is not null');
  // Where nobody has guessed yet.
  const replica = await api.openReplica();
  const statusOf = async (key: string) => (await request(replica.url, 'GET', '/v1/whoami', { key })).status;
  try {
    const statuses: number[] = [];
    for (let tried = 0; tried < guessesPerMinute + 10; tried++) {
      statuses.push(await statusOf(tried % 2 === 0 ? elsewhere : ended));
    }
    const allowed = statuses.indexOf(429);
    assert.deepEqual(new Set(statuses.slice(0, allowed)), new Set([403, 401]));
    assert.ok(allowed >= guessesPerMinute && allowed <= guessesPerMinute + 5, `refused after ${allowed}`);
    assert.equal(await statusOf(user.key), 200);
  } finally {
    await replica.close();
  }
});

test('IPv6 sources count by their /64, IPv4 ones by address, a unix socket not at all', () => {
  const limits = createRateLimits(1, () => 0);
  assert.ok(limits);
  const { guesses } = limits;
  for (let tried = 0; tried < guessesPerMinute; tried++) {
    guesses.count(`2001:db8:1:2:${tried.toString(16)}::1`);
    guesses.count('::ffff:192.0.2.1');
    guesses.count(undefined);
  }
  assert.ok(guesses.refusedFor('2001:db8:1:2:ffff::9'));
  assert.ok(guesses.refusedFor('2001:db8:1:2::%eth0'));
  assert.equal(guesses.refusedFor('2001:db8:1:3::1'), undefined);
  assert.ok(guesses.refusedFor('192.0.2.1'));
  assert.equal(guesses.refusedFor('192.0.2.2'), undefined);
  assert.equal(guesses.refusedFor(undefined), undefined);
});

test('memory is bounded: of ever new names only the latest are remembered', () => {
  let at = 0;
  const buckets = createBuckets(() => at, 1000);
  for (let name = 0; name < 10_000; name++) buckets.take(`name ${name}`, 1);
  assert.equal(buckets.look('name 9999', 1).allowed, false);
  assert.equal(buckets.look('name 7999', 1).allowed, true, 'forgotten');
  assert.ok(buckets.size() <= 2000);
  at += 60_000;
  buckets.take('fresh', 1);
  at += 60_000;
  buckets.take('fresh', 1);
  assert.ok(buckets.size() <= 2, 'what was unused for a minute is forgotten');
});

test('with limits off no answer tells of any, whatever a key has', async () => {
  const open = await startApi();
  try {
    const { uuid } = await open.provider(['203.0.113.0/24']);
    const key = await open.key(uuid, { rate_limit: 1 });
    for (let sent = 0; sent < 3; sent++) {
      const reply = await open.call('whoAmI', {}, { key });
      assert.deepEqual([reply.status, reply.headers.get('ratelimit-policy')], [200, null]);
    }
  } finally {
    await open.stop();
  }
});
