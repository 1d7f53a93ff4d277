import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { type Receiver, startReceiver } from '../backends/webhook/testing/receiver.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import {
  type ApiFixture,
  type Ask,
  type Holder,
  operationOf,
  type Reply,
  request,
  startApi,
} from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let plane: ControlPlane;
let user: Holder;
let provider: Holder;
const receivers: Receiver[] = [];

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database);
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  await waitUntil(() => plane.events.leads, 'the replica leads');
});
after(async () => {
  await plane?.stop();
  await Promise.all(receivers.map((receiver) => receiver.close()));
  await api.stop();
});

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  receivers.push(started);
  return started;
}

/** At the replica that sends. */
function call(id: string, params: Record<string, string>, ask: Ask = {}): Promise<Reply> {
  const { method, path } = operationOf(id);
  const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
  return request(plane.url, method, `/v1${at}${ask.query ?? ''}`, { key: user.key, ...ask });
}

async function make(url: string, more: object = {}, key = user.key): Promise<{ uuid: string; secret: string }> {
  const { status, body, text } = await call('createWebhook', {}, { key, body: { url, events: ['*'], ...more } });
  assert.equal(status, 200, text);
  return body;
}

const verify = (target: Receiver, secret: string, at = 0) =>
  new Webhook(secret).verify(
    target.received[at]?.text ?? '',
    target.received[at]?.headers as Record<string, string>,
    // biome-ignore lint/suspicious/noExplicitAny: the body of a delivery.
  ) as any;

test('a rule that is made arrives at the webhooks of its owner and of its provider, as the stream shows it', async () => {
  const [own, above, other] = [await receiver(), await receiver(), await receiver()];
  const { secret, uuid } = await make(own.url, { events: ['firewall_rule.pending'] });
  const ofProvider = await make(above.url, { events: ['firewall_rule.*'] }, provider.key);
  await make(other.url, { events: ['attack.*'] });
  const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  const made = await request(plane.url, 'POST', '/v1/firewall/rule', { key: user.key, body: rule });
  await waitUntil(() => own.received.length > 0 && above.received.length > 0, 'both are told');
  const event = verify(own, secret);
  assert.deepEqual([event.type, event.data], ['firewall_rule.pending', made.body]);
  assert.equal(verify(above, ofProvider.secret).id, event.id);
  await waitUntil(async () => {
    const { body } = await api.call('listWebhookDeliveries', { uuid }, { key: user.key, query: '?state=delivered' });
    return body.length === 1 && body[0].event_id === event.id && body[0].attempts[0].status === 204;
  }, 'its log says so');
  assert.equal(other.received.length, 0);
});

test('a test arrives the way events do, and can be sent again with the same id', async () => {
  const target = await receiver();
  target.answer((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
  const { uuid, secret } = await make(target.url, { events: ['attack.*'], description: 'nightly' });
  const queued = await call('testWebhook', { uuid });
  assert.deepEqual([queued.body.event, queued.body.state, queued.body.attempts], ['webhook.test', 'pending', []]);
  await waitUntil(() => target.received.length === 1, 'it arrives');
  const event = verify(target, secret);
  assert.deepEqual(
    [event.type, event.data.uuid, event.data.description, event.data.secret],
    ['webhook.test', uuid, 'nightly', undefined],
  );
  const delivery = async () => (await api.call('listWebhookDeliveries', { uuid }, { key: user.key })).body[0];
  await waitUntil(async () => (await delivery()).attempts.length === 1, 'the failure is kept');
  const failing = (await api.call('readWebhook', { uuid }, { key: user.key })).body;
  assert.deepEqual([failing.state, failing.state_reason], ['failing', 'The last attempt: answered with status 500.']);
  const again = await call('retryWebhookDelivery', { uuid, delivery_uuid: queued.body.uuid });
  assert.equal(again.status, 200);
  await waitUntil(async () => (await delivery()).state === 'delivered', 'the repetition is delivered');
  assert.equal(target.received[1]?.headers['webhook-id'], target.received[0]?.headers['webhook-id']);
  assert.equal(target.received[1]?.text, target.received[0]?.text);
  assert.equal((await api.call('readWebhook', { uuid }, { key: user.key })).body.state, 'active');
});

test('a secret is shown where it is made and nowhere else, and both sign after a rotation', async () => {
  const target = await receiver();
  const { uuid, secret } = await make(target.url);
  const read = await api.call('readWebhook', { uuid }, { key: user.key });
  const listed = await api.call('listWebhooks', {}, { key: user.key });
  const changed = await call('changeWebhook', { uuid }, { body: { events: ['attack.*'] } });
  for (const { text } of [read, listed, changed]) assert.doesNotMatch(text, /whsec_/);
  const rotated = await call('rotateWebhookSecret', { uuid });
  assert.notEqual(rotated.body.secret, secret);
  const left = Date.parse(rotated.body.former_secret_valid_until) - Date.now();
  assert.ok(left > 23.9 * 3_600_000 && left <= 24 * 3_600_000, String(left));
  await call('testWebhook', { uuid });
  await waitUntil(() => target.received.length === 1, 'it arrives');
  assert.ok(verify(target, secret) && verify(target, rotated.body.secret));
  const { rows } = await api.database.pool.query<{ text: string }>(
    `select concat(before::text, after::text) as text from audit where kind = 'webhook' and object_uuid = $1`,
    [uuid],
  );
  assert.equal(rows.length, 3, 'creation, change, rotation');
  for (const { text } of rows) assert.doesNotMatch(text, /whsec_/);
});

test('where a webhook may not lead is told when it is made and when it is changed', async () => {
  const { uuid } = await make('https://hooks.example.net/');
  const cases: readonly [url: string, message: string | undefined][] = [
    ['http://10.0.0.1/', 'url: 10.0.0.1 is a private address (10.0.0.0/8); webhooks reach public addresses only'],
    ['http://0x7f.1/', undefined],
    [
      'http://[fd00:ec2::254]/',
      'url: fd00:ec2::254 is a unique local address (fc00::/7); webhooks reach public addresses only',
    ],
    [
      'http://169.254.169.254/latest',
      'url: 169.254.169.254 is a link-local address (169.254.0.0/16); webhooks reach public addresses only',
    ],
    [
      'https://inside.example.org/',
      'url: inside.example.org resolves to 10.0.0.81, which is a private address (10.0.0.0/8); webhooks reach public addresses only',
    ],
    ['https://nowhere.example.com/', 'url: nowhere.example.com cannot be reached: the name has no address'],
    // DNS fails for the moment: it is judged at each attempt in any case.
    ['https://slow.example.org/', undefined],
    [
      'https://a:b@hooks.example.net/',
      'url: must hold no user name and no password; put a token into the path or the query instead',
    ],
  ];
  for (const [url, message] of cases) {
    for (const [id, body] of [
      ['createWebhook', { url, events: ['*'] }],
      ['changeWebhook', { url }],
    ] as const) {
      const reply = await api.call(id, { uuid }, { key: user.key, body });
      assert.equal(reply.status, message === undefined ? 200 : 400, `${id} ${url}: ${reply.text}`);
      if (message === undefined) continue;
      assert.deepEqual([reply.body.message, reply.body.field], [message, '/url']);
    }
  }
  const all = await api.call(
    'createWebhook',
    {},
    { key: user.key, body: { url: 'ftp://x/', events: ['firewall'], descr: 1 } },
  );
  const fields = all.body.details.map(({ field }: { field: string }) => field).sort();
  assert.deepEqual(fields, ['/descr', '/events/0', '/url']);
});

test('disabling cancels what waits, and enabling forgets what failed', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(500).end());
  const { uuid } = await make(target.url);
  await call('testWebhook', { uuid });
  await waitUntil(
    async () => (await api.call('readWebhook', { uuid }, { key: user.key })).body.state === 'failing',
    'it fails',
  );
  const disabled = await call('changeWebhook', { uuid }, { body: { disabled: true } });
  assert.deepEqual([disabled.body.state, disabled.body.disabled], ['disabled', true]);
  const { body } = await api.call('listWebhookDeliveries', { uuid }, { key: user.key });
  assert.deepEqual([body[0].state, body[0].next_attempt_at], ['cancelled', undefined]);
  const enabled = await call('changeWebhook', { uuid }, { body: { disabled: false } });
  assert.deepEqual([enabled.body.state, enabled.body.failing_since], ['active', undefined]);
});

test('the log of deliveries comes in pages, the latest first', async () => {
  const { uuid } = await make('https://hooks.example.net/');
  const queued: string[] = [];
  for (let each = 0; each < 5; each++)
    queued.unshift((await api.call('testWebhook', { uuid }, { key: user.key })).body.uuid);
  const seen: string[] = [];
  let query = '?limit=2';
  for (let pages = 1; ; pages++) {
    const { body, headers } = await api.call('listWebhookDeliveries', { uuid }, { key: user.key, query });
    seen.push(...body.map((delivery: { uuid: string }) => delivery.uuid));
    const next = /<[^?]+(\?[^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    if (next === undefined) {
      assert.equal(pages, 3);
      break;
    }
    query = next;
  }
  assert.deepEqual(seen, queued);
});

test("a quota on webhooks holds, and a deleted user's webhooks are gone", async () => {
  const limited = await api.user(provider, ['203.0.113.64/28']);
  await api.call('setQuota', { account_uuid: limited.uuid }, { key: api.operatorKey, body: { webhooks: 1 } });
  const body = { url: 'https://hooks.example.net/', events: ['*'] };
  const both = await Promise.all([1, 2].map(() => api.call('createWebhook', {}, { key: limited.key, body })));
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 429]);
  assert.equal(both.find(({ status }) => status === 429)?.body.error, 'quota_exceeded');
  const target = await receiver();
  const { uuid } = both.find(({ status }) => status === 200)?.body ?? {};
  await api.call('changeWebhook', { uuid }, { key: limited.key, body: { url: target.url } });
  await api.call('deleteUser', { uuid: limited.uuid }, { key: provider.key });
  const { rows } = await api.database.pool.query('select from account where uuid = $1 and deletion_marked_at is null', [
    limited.uuid,
  ]);
  assert.equal(rows.length, 0);
  const refused = await api.call('listWebhooks', {}, { key: limited.key });
  assert.equal(refused.status, 401);
});

test('an account may have twenty webhooks, whatever its quota, however many it makes at once', async () => {
  const holder = await api.user(provider, ['203.0.113.80/28']);
  await api.call('setQuota', { account_uuid: holder.uuid }, { key: api.operatorKey, body: { webhooks: 1000 } });
  const body = { url: 'https://hooks.example.net/', events: ['*'] };
  const create = () => api.call('createWebhook', {}, { key: holder.key, body });
  const replies = await Promise.all(Array.from({ length: 25 }, create));
  assert.equal(replies.filter(({ status }) => status === 200).length, 20);
  const refused = replies.find(({ status }) => status === 429)?.body;
  assert.deepEqual(
    [refused.error, refused.message, refused.details[0].quota],
    [
      'quota_exceeded',
      'webhooks: an account may hold 20, and this one holds 20; delete some that are not needed',
      { kind: 'webhooks', maximum: 20, used: 20 },
    ],
  );
  const [{ uuid }] = (await api.call('listWebhooks', {}, { key: holder.key })).body;
  assert.equal((await api.call('deleteWebhook', { uuid }, { key: holder.key })).status, 200);
  assert.equal((await api.call('readWebhook', { uuid }, { key: holder.key })).status, 404);
  assert.equal((await api.call('listWebhooks', {}, { key: holder.key })).body.length, 19);
  assert.equal((await create()).status, 200);
});

test('a webhook ends with the limited key that it was set with, and says so', async () => {
  const target = await receiver();
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const limited = await api.key(user.uuid, { expires_at });
  const { api_key } = (await api.call('whoAmI', {}, { key: limited })).body;
  const bound = await make(target.url, { events: ['attack.*'] }, limited);
  const read = async () => (await api.call('readWebhook', { uuid: bound.uuid }, { key: user.key })).body;
  const shown = await read();
  assert.deepEqual([shown.state, shown.api_key_uuid, shown.valid_until], ['active', api_key.uuid, expires_at]);

  // What another key says about it alone does not set it free; where it leads does.
  await call('changeWebhook', { uuid: bound.uuid }, { body: { description: 'x' } });
  assert.equal((await read()).api_key_uuid, api_key.uuid);
  const freed = await call('changeWebhook', { uuid: bound.uuid }, { body: { events: ['*'] } });
  assert.equal(freed.body.api_key_uuid, undefined);
  const again = await call('changeWebhook', { uuid: bound.uuid }, { key: limited, body: { url: target.url } });
  assert.equal(again.body.api_key_uuid, api_key.uuid);

  await api.call('revokeApiKey', { uuid: api_key.uuid }, { key: user.key });
  const ended = await read();
  assert.deepEqual(
    [ended.state, ended.state_reason],
    ['disabled', 'The API key that it was set with was revoked or has expired.'],
  );
  assert.equal((await call('testWebhook', { uuid: bound.uuid })).status, 409);
  assert.equal((await call('changeWebhook', { uuid: bound.uuid }, { body: { disabled: false } })).body.state, 'active');
  assert.equal((await call('testWebhook', { uuid: bound.uuid })).status, 200);
  await waitUntil(() => target.received.length === 1, 'it gets something again');
});

test('a key that may not follow events has none sent either', async () => {
  const writes = ['createWebhook', 'changeWebhook', 'listWebhooks'];
  const narrow = await api.key(user.uuid, { operations: writes });
  const body = { url: 'https://hooks.example.net/', events: ['*'] };
  const refused = await api.call('createWebhook', {}, { key: narrow, body });
  assert.deepEqual([refused.status, refused.body.error], [403, 'operation_not_allowed']);
  assert.match(refused.body.message, /readEvents/);
  const { uuid } = await make(body.url, { disabled: true });
  for (const change of [{ url: body.url }, { events: ['*'] }, { disabled: false }]) {
    assert.equal((await api.call('changeWebhook', { uuid }, { key: narrow, body: change })).status, 403);
  }
  const harmless = await api.call('changeWebhook', { uuid }, { key: narrow, body: { description: 'x' } });
  assert.equal(harmless.status, 200);
  const wider = await api.key(user.uuid, { operations: [...writes, 'readEvents'] });
  assert.equal((await api.call('createWebhook', {}, { key: wider, body })).status, 200);
});

test('of a webhook so many tests and repetitions a minute are taken, and of another as many', async () => {
  const [busy, other] = [await make('https://hooks.example.net/'), await make('https://hooks.example.net/')];
  const ask = { key: user.key };
  const test = ({ uuid }: { uuid: string }) => api.call('testWebhook', { uuid }, ask);
  const { body: first } = await test(busy);
  for (let each = 1; each < 30; each++) assert.equal((await test(busy)).status, 200);
  const refused = await test(busy);
  assert.deepEqual([refused.status, refused.body.details[0].code], [429, 'asked_too_often']);
  assert.ok(Number(refused.headers.get('retry-after')) >= 1);
  const again = await api.call('retryWebhookDelivery', { uuid: busy.uuid, delivery_uuid: first.uuid }, ask);
  assert.equal(again.status, 429);
  const { rows } = await api.database.pool.query('select from webhook_delivery where webhook_uuid = $1', [busy.uuid]);
  assert.equal(rows.length, 30, 'nothing is queued by what is refused');
  assert.equal((await test(other)).status, 200);
});

test('the audit log shows where a webhook leads without what may be a token, and that a token changed', async () => {
  const { uuid } = await make('https://hooks.example.net:8443/services/T0K3N-a?key=T0K3N-b');
  await call('changeWebhook', { uuid }, { body: { url: 'https://hooks.example.net:8443/services/T0K3N-c' } });
  await call('rotateWebhookSecret', { uuid });
  await call('testWebhook', { uuid });
  await call('deleteWebhook', { uuid });
  const { body, text } = await api.call('listAudit', {}, { key: provider.key, query: `?object_uuid=${uuid}` });
  assert.doesNotMatch(text, /T0K3N/);
  const settings = { url: 'https://hooks.example.net:8443', events: ['*'], disabled: false };
  assert.deepEqual(
    body.map(({ operation, before, after }: { operation: string; before?: object; after?: object }) => [
      operation,
      before,
      after,
    ]),
    [
      ['createWebhook', undefined, settings],
      ['changeWebhook', settings, { ...settings, url_changed: true }],
      ['rotateWebhookSecret', undefined, undefined],
      ['deleteWebhook', settings, undefined],
    ],
  );
});
