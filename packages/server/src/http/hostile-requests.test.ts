import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { errors } from '@levee/contract/errors.ts';
import type { Operation } from '@levee/contract/operation.ts';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';
import { examples, names, numbers, queryNames, strings } from './testing/hostile-values.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
/** Named in requests, and may well be deleted by one. */
let victim: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  victim = await api.user(provider, ['203.0.113.16/28']);
});
after(() => api.stop());

/** xorshift: the same requests in every run. */
let state = Number(process.env.LEVEE_TEST_SEED ?? 20250131);
function random(below: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}
const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;

function value(depth: number): unknown {
  switch (random(depth > 4 ? 5 : 8)) {
    case 0:
      return pick(strings);
    case 1:
      return pick(numbers);
    case 2:
      return null;
    case 3:
      return random(2) === 0;
    case 4:
      return pick(strings);
    case 5:
      return Array.from({ length: random(6) }, () => value(depth + 1));
    default:
      return Object.fromEntries(Array.from({ length: random(7) }, () => [pick(names), value(depth + 1)]));
  }
}

/** A good body with a few members replaced: gets past the first checks. */
function nearly(): unknown {
  const base = pick<object>([
    ...examples,
    { dst: '203.0.113.7', protocol: 'tcp', action: 'drop' },
    { rules: [{ protocol: 'udp', action: 'drop' }] },
    { dst: '203.0.113.7', filter: 20 },
    { username: 'somebody', email: 'some@example.net', password: 'ochre-meadow-tin-61', ips: ['203.0.113.9'] },
    { user_uuid: victim.uuid, ips: ['203.0.113.16/29'] },
    { email: victim.email, password: 'ochre-meadow-tin-62' },
    { name: 'x', account_uuid: victim.uuid },
    { dst: '203.0.113.7', src: '192.0.2.1', protocol: 'tcp' },
  ]);
  const changed: Record<string, unknown> = { ...base };
  for (let times = random(3); times >= 0; times--) {
    changed[random(2) === 0 ? pick(Object.keys(base)) : pick(names)] = value(1);
  }
  return changed;
}

function text(): string {
  switch (random(10)) {
    case 0:
      return pick([
        '',
        '{',
        '[',
        'null',
        '"',
        '{"a":1,}',
        '{"__proto__":{"x":1}}',
        '{"constructor":{"prototype":{}}}',
        '{"\\u005f_proto__":1}',
        '\ufeff{}',
        'NaN',
        '{"dst":"203.0.113.7"}{}',
        '\x00',
      ]);
    case 1:
      return '['.repeat(random(20000));
    case 2:
      return `${'{"src":'.repeat(random(200))}1${'}'.repeat(random(200))}`;
    case 3:
    case 4:
    case 5:
      return JSON.stringify(value(0));
    default:
      return JSON.stringify(nearly());
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'LOCK'];

function path(operation: Operation): string {
  const uuids = ['0190a5d0-0000-7000-8000-000000000000', 'x', '%2e%2e', '%', '%ff', "';", 'a'.repeat(300), victim.uuid];
  const uuid = pick(uuids);
  const known = operation.path.replaceAll(/\{\w+\}/g, uuid);
  const odd = encodeURIComponent(pick(strings).slice(0, 300).toWellFormed());
  const query = pick([
    '',
    '',
    '',
    '?dst=203.0.113.7',
    '?dst=%zz',
    '?limit=1e3',
    '?limit=-1',
    '?a[b]=c',
    '?__proto__=x',
    '?state=',
    `?cursor=${'z'.repeat(200)}`,
    '?user_uuid=null',
    '?&&=&',
    `?${pick(queryNames)}=${odd}`,
    `?${pick(queryNames)}=${odd}&${pick(queryNames)}=${pick(numbers)}`,
    `?${pick(queryNames)}=${pick(uuids)}`,
  ]);
  return pick([
    `/v1${known}${query}`,
    `/v1${known}${query}`,
    `/v1${known}${query}`,
    `/v1${known}/${uuid}`,
    `/${uuid}`,
    `//v1${known}`,
    `/v1/..${known}`,
    `/v2${known}`,
    '/',
    '*',
  ]);
}

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
after(() => agent.destroy());

interface Got {
  readonly status: number;
  readonly text: string;
  readonly type: string;
}

function send(method: string, target: string, headers: Record<string, string>, body: string): Promise<Got> {
  const { port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ port, host: '127.0.0.1', method, path: target, headers, agent }, (incoming) => {
      const type = incoming.headers['content-type'] ?? '';
      // Never ends by itself.
      if (type.startsWith('text/event-stream')) {
        incoming.destroy();
        resolve({ status: incoming.statusCode ?? 0, text: '', type });
        return;
      }
      const parts: Buffer[] = [];
      incoming.on('data', (part) => parts.push(part));
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          text: Buffer.concat(parts).toString(),
          type,
        }),
      );
      incoming.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function judge(got: Got, method: string, what: string): void {
  assert.ok(got.status < 500, `${what} → ${got.status} ${got.text.slice(0, 300)}`);
  if (got.status < 400 || method === 'HEAD') return;
  assert.match(got.type, /^application\/json/, what);
  const body = JSON.parse(got.text);
  assert.ok(Object.hasOwn(errors, body.error), `${what} → ${got.text.slice(0, 300)}`);
  assert.ok(typeof body.message === 'string' && body.message.length > 0, what);
  assert.ok(got.text.length < 200_000, `${what}: an answer of ${got.text.length} bytes`);
}

/** The long run sets it to a hundred thousand. */
const requests = Number(process.env.LEVEE_TEST_REQUESTS ?? 6000);

test(`${requests} malformed and hostile requests: no 5xx, every refusal has error and message, the service lives`, async () => {
  const keys = { user: user.key, provider: provider.key, operator: api.operatorKey };
  const odd = [undefined, '', 'x', 'lv_u_x_y', '\t', 'ÿ'.repeat(10)];
  let sent = 0;
  const seen = new Set<number>();
  /** Operations that judged a request, by id. */
  const judged = new Set<string>();
  const worker = async () => {
    while (sent < requests) {
      sent++;
      const operation = pick(api.api.operations);
      // As often its own method: of ten that are drawn, few would lead to a handler.
      const method = random(2) === 0 ? operation.method : pick(methods);
      const role = random(3) === 0 ? pick(['user', 'provider', 'operator'] as const) : pick(operation.roles);
      const key = random(12) === 0 ? pick(odd) : keys[role];
      const body = random(6) === 0 ? '' : text();
      const headers: Record<string, string> = {
        'content-type': pick([
          'application/json',
          'application/json',
          'application/json',
          'application/json; charset=latin1',
          'text/plain',
          'multipart/form-data',
          ';',
          'application/xml',
        ]),
        'x-request-id': pick(['ok-1', 'x'.repeat(300), '<script>', 'a b']),
        prefer: pick(['wait=0', 'wait=-5', 'wait=99999999999999', 'respond-async', 'wait=x;;;', 'wait=0']),
        'idempotency-key': pick(['a', 'b', 'c', ' ', 'x'.repeat(256), `n${sent}`, `n${sent}`]),
        'if-none-match': pick(['*', '"x"', 'W/"', ',,,']),
      };
      if (random(3) > 0) delete headers['idempotency-key'];
      // Node's client tells no length for a GET's body, and its bytes would pass for another request.
      if (body === '') delete headers['content-type'];
      else headers['content-length'] = String(Buffer.byteLength(body));
      if (key !== undefined) headers['x-api-key'] = key;
      const target = path(operation);
      const what = `${method} ${target} ${body.slice(0, 200)}`;
      const got = await send(method, target, headers, body);
      seen.add(got.status);
      // 404 of a handler's, when the path is one.
      const known = target.split('?', 1)[0]?.split('/').length === `/v1${operation.path}`.split('/').length;
      const handled = [200, 400, ...(known && target.startsWith('/v1/') ? [404] : [])];
      if (method === operation.method && handled.includes(got.status)) judged.add(operation.id);
      judge(got, method, what);
    }
  };
  await Promise.all(Array.from({ length: 12 }, worker));
  assert.ok(sent >= requests);
  const reached = [200, 400, 401, 403, 404, 405, 415].filter((status) => !seen.has(status));
  assert.deepEqual(reached, [], 'the requests get past the first checks');
  const missed = api.api.operations.map(({ id }) => id).filter((id) => !judged.has(id));
  assert.deepEqual(missed, [], 'every operation has judged some of them');
  assert.equal((await api.call('whoAmI', {}, { key: api.operatorKey })).status, 200);
  // Nothing of it reached an object's prototype.
  assert.equal(({} as Record<string, unknown>).x, undefined);
});

const crlf = '\r\n';
const smuggling: Readonly<Record<string, string>> = {
  'two lengths': `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}content-length: 5${crlf}content-length: 6${crlf}${crlf}hello`,
  'length and chunks': `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}content-length: 5${crlf}transfer-encoding: chunked${crlf}${crlf}0${crlf}${crlf}`,
  'odd encoding': `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}transfer-encoding: xchunked${crlf}${crlf}0${crlf}${crlf}`,
  'space before colon': `GET /v1/whoami HTTP/1.1${crlf}host : x${crlf}${crlf}`,
  'folded header': `GET /v1/whoami HTTP/1.1${crlf}host: x${crlf}x-a: b${crlf} c${crlf}${crlf}`,
  'bare newline': 'GET /v1/whoami HTTP/1.1\nhost: x\n\n',
  'negative length': `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}content-length: -1${crlf}${crlf}`,
  'bad chunk': `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}transfer-encoding: chunked${crlf}${crlf}zz${crlf}`,
  'no host': `GET /v1/whoami HTTP/1.1${crlf}${crlf}`,
  'no version': `GET /v1/whoami${crlf}${crlf}`,
  'odd version': `GET /v1/whoami HTTP/9.9${crlf}host: x${crlf}${crlf}`,
  'not http': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'null in header': `GET /v1/whoami HTTP/1.1${crlf}host: x${crlf}x-a: \x00${crlf}${crlf}`,
  'absolute form': `GET http://other/v1/whoami HTTP/1.1${crlf}host: x${crlf}connection: close${crlf}${crlf}`,
  'a tunnel': `CONNECT other:443 HTTP/1.1${crlf}host: x${crlf}${crlf}`,
  upgrade: `GET /v1/whoami HTTP/1.1${crlf}host: x${crlf}connection: upgrade, close${crlf}upgrade: h2c${crlf}${crlf}`,
  expectation: `POST /v1/firewall/rule HTTP/1.1${crlf}host: x${crlf}expect: the-unexpected${crlf}connection: close${crlf}content-length: 0${crlf}${crlf}`,
};

for (const [name, bytes] of Object.entries(smuggling)) {
  test(`a request with ${name} gets one refusal, and the connection ends`, async () => {
    const received = await exchange(Buffer.from(bytes, 'latin1'));
    const answers = received.split(/(?=HTTP\/1\.1 \d{3} )/).filter((answer) => !answer.startsWith('HTTP/1.1 100'));
    assert.equal(answers.length, 1, received);
    const [, status = ''] = /^HTTP\/1\.1 (\d{3})/.exec(received) ?? [];
    assert.match(status, /^4/, received);
    const body = JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4));
    assert.ok(Object.hasOwn(errors, body.error) && body.message.length > 0, received);
  });
}

function exchange(bytes: Buffer): Promise<string> {
  const { port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes));
    let received = '';
    socket.setEncoding('utf8');
    socket.setTimeout(10_000, () => socket.destroy(new Error(`the connection stays open after: ${received}`)));
    socket.on('data', (data) => {
      received += data;
    });
    socket.on('end', () => resolve(received));
    socket.on('error', reject);
  });
}
