import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type ErrorCode, errors } from '@levee/contract/errors.ts';
import { errorsOf, type Operation, type Role } from '@levee/contract/operation.ts';
import { quotaKinds } from '@levee/contract/schemas/quota.ts';
import type pg from 'pg';
import { type ApiFixture, type Ask, checkReply, type Reply, startApi } from './testing/api-fixture.ts';
import type { Request } from './testing/case-kit.ts';
import { operationCases } from './testing/operation-cases.ts';
import { buildWorld, type World } from './testing/world.ts';

let api: ApiFixture;
let world: World;
let cases: ReturnType<typeof operationCases>;
/** What the database answers instead, when set. */
let fault: Error | undefined;

const shortLimits = {
  headersTimeout: 1_500,
  requestTimeout: 1_500,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 100,
};

/** More than this file sends, so that only keys with a limit of their own meet it. */
const plenty = 1_000_000;

before(async () => {
  api = await startApi({ wrapPool: faulty, limits: shortLimits, rateLimit: plenty, trustedProxies: ['127.0.0.1'] });
  world = await buildWorld(api);
  cases = operationCases(api, world);
});
after(() => api.stop());

function faulty(pool: pg.Pool): pg.Pool {
  return new Proxy(pool, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'query' && name !== 'connect') return value.bind(target);
      return (...args: unknown[]) => (fault === undefined ? value.apply(target, args) : Promise.reject(fault));
    },
  });
}

function pathOf(operation: Operation, request: Request): string {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => request.params?.[name] ?? '');
  return `/v1${path}${request.ask.query ?? ''}`;
}

async function send(operation: Operation, request: Request, more: object = {}): Promise<Reply> {
  const ask: Ask = { ...request.ask, ...more };
  const headers = { 'x-forwarded-for': sourceOf(operation), ...ask.headers };
  const reply = await api.raw(operation.method, pathOf(operation, request), { ...ask, headers });
  checkReply(operation, reply);
  return reply;
}

/** Another address for each operation: the invalid keys of all together are more than one address may try. */
function sourceOf(operation: Operation): string {
  return `198.51.100.${1 + api.api.operations.indexOf(operation)}`;
}

type Meet = (operation: Operation, good: () => Promise<Request>) => Promise<Reply>;

/** How any operation comes to meet the errors that any can. */
const meetings: Partial<Record<ErrorCode, Meet>> = {
  missing_api_key: async (operation, good) => send(operation, await good(), { key: undefined }),
  invalid_api_key: async (operation, good) => {
    const request = await good();
    const misspelt = request.ask.key?.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    return send(operation, request, { key: misspelt });
  },
  source_not_allowed: async (operation, good) => {
    const request = await good();
    return send(operation, request, { key: await api.key(request.account, { sources: ['192.0.2.0/24'] }) });
  },
  read_only_key: async (operation, good) => {
    const request = await good();
    return send(operation, request, { key: await api.key(request.account, { read_only: true }) });
  },
  operation_not_allowed: async (operation, good) => {
    const request = await good();
    const other = operation.id === 'whoAmI' ? 'listApiKeys' : 'whoAmI';
    return send(operation, request, { key: await api.key(request.account, { operations: [other] }) });
  },
  provider_key_required: (operation, good) => withForeignRole(operation, good),
  operator_key_required: (operation, good) => withForeignRole(operation, good),
  invalid_json: async (operation, good) => send(operation, await good(), { text: '{"dst": "203.0.113.7",}' }),
  body_too_large: async (operation, good) =>
    send(operation, await good(), { text: JSON.stringify({ descr: 'x'.repeat(1024 * 1024) }) }),
  unsupported_media_type: async (operation, good) =>
    send(operation, await good(), { text: 'dst=203.0.113.7', headers: { 'content-type': 'text/plain' } }),
  not_found: async (operation, good) => {
    const request = await good();
    const [name = ''] = Object.keys(operation.params?.properties ?? {});
    return send(operation, { ...request, params: { [name]: '0190a5d0-0000-7000-8000-000000000000' } });
  },
  validation_failed: async (operation, good) => {
    const request = await good();
    const takesBody = operation.body !== undefined && operation.method !== 'GET';
    if (takesBody) return send(operation, request, { body: { no_such_field: 1 } });
    return send(operation, { ...request, ask: { ...request.ask, query: '?no_such=1' } });
  },
  idempotency_key_reused: async (operation, good) => {
    const headers = { 'idempotency-key': `reused-${operation.id}` };
    assert.equal((await send(operation, await good(), { headers })).status, 200);
    const other = await good();
    const reply = await api.raw(operation.method, pathOf(operation, other).replace('v1', 'v%31'), {
      ...other.ask,
      headers,
    });
    checkReply(operation, reply);
    return reply;
  },
  rate_limited: async (operation, good) => {
    const request = await good();
    // One that ends is no operator key without restrictions, of which another case needs the last one.
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const key = await api.key(request.account, { rate_limit: 1, expires_at });
    await api.call('whoAmI', {}, { key });
    const reply = await send(operation, request, { key });
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal(reply.headers.get('ratelimit-policy'), '"default";q=1;w=60');
    return reply;
  },
  quota_exceeded: async (operation, good) => {
    const request = await good();
    const account = [request.account];
    await api.database.pool.query(
      'insert into quota (account_uuid, kind, maximum) select $1, kind, 0 from unnest($2::text[]) kind',
      [request.account, quotaKinds],
    );
    try {
      return await send(operation, request);
    } finally {
      await api.database.pool.query('delete from quota where account_uuid = $1', account);
    }
  },
  unavailable: (operation, good) =>
    withFault(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }), operation, good),
  internal: (operation, good) => withFault(new Error('secret inner workings'), operation, good),
  invalid_request: async (operation, good) =>
    overSocket(operation, `${operation.method} ${pathOf(operation, await good())} HTTP/1.1\r\nhost x\r\n\r\n`),
  headers_too_large: async (operation, good) => {
    const head = `${operation.method} ${pathOf(operation, await good())} HTTP/1.1\r\nhost: x\r\n`;
    return overSocket(operation, `${head}x-long: ${'y'.repeat(17 * 1024)}\r\n\r\n`);
  },
  request_timeout: async (operation, good) =>
    overSocket(operation, `${operation.method} ${pathOf(operation, await good())} HTTP/1.1\r\nhost: x\r\n`),
};

async function withForeignRole(operation: Operation, good: () => Promise<Request>): Promise<Reply> {
  const keys: Record<Role, string> = {
    operator: api.operatorKey,
    provider: world.holders.provider.key,
    user: world.holders.user.key,
  };
  const foreign = (['operator', 'provider', 'user'] as const).filter((role) => !operation.roles.includes(role));
  let last: Reply | undefined;
  for (const role of foreign) {
    last = await send(operation, await good(), { key: keys[role] });
    assert.equal(last.status, 403, role);
  }
  assert.ok(last);
  return last;
}

async function withFault(error: Error, operation: Operation, good: () => Promise<Request>): Promise<Reply> {
  const request = await good();
  api.api.keys.forget();
  fault = error;
  try {
    const reply = await send(operation, request);
    assert.doesNotMatch(reply.text, /ECONN|secret|stack|node:/);
    return reply;
  } finally {
    fault = undefined;
  }
}

/** Sends bytes that no client library would, and reads the answer to its end. */
async function overSocket(operation: Operation, bytes: string): Promise<Reply> {
  const { port } = new URL(api.url);
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes));
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (data) => {
      received += data;
    });
    socket.on('end', () => resolve(received));
    socket.on('error', reject);
  });
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(': ', 2) as [string, string]));
  const reply = { status: Number(first.split(' ')[1]), text: body, body: JSON.parse(body), headers };
  checkReply(operation, reply);
  return reply;
}

test('every served operation has its cases', () => {
  const served = api.api.operations.map((operation) => operation.id).sort();
  assert.deepEqual(Object.keys(cases).sort(), served);
});

test('every served operation answers each status that it declares', async (context) => {
  for (const operation of api.api.operations) {
    const its = cases[operation.id];
    assert.ok(its);
    const undeclared = (Object.keys(its.bad) as ErrorCode[]).filter((code) => !errorsOf(operation).includes(code));
    assert.deepEqual(undeclared, [], operation.id);
    await context.test(`${operation.id}: 200`, async () => {
      const reply = await send(operation, await its.good());
      assert.equal(reply.status, 200, reply.text);
    });
    for (const code of errorsOf(operation)) {
      // All at once, below: each takes as long as the server's patience.
      if (code === 'request_timeout') continue;
      await context.test(`${operation.id}: ${errors[code].status} ${code}`, async () => {
        const own = its.bad[code];
        const meet = meetings[code];
        assert.ok(own ?? meet, 'declared, and nothing says how to meet it');
        const reply = own ? await send(operation, await own()) : await (meet as Meet)(operation, its.good);
        assert.equal(reply.body.error, code, reply.text);
        assert.equal(reply.status, errors[code].status, reply.text);
      });
    }
  }
});

test('a request that does not arrive in time is answered 408 by every operation', async () => {
  await Promise.all(
    api.api.operations.map(async (operation) => {
      const { good } = cases[operation.id] ?? {};
      assert.ok(good && meetings.request_timeout);
      const reply = await meetings.request_timeout(operation, good);
      assert.deepEqual([reply.status, reply.body.error], [408, 'request_timeout']);
    }),
  );
});

test('an entity tag of the present answer gives 304 without a body', async () => {
  for (const operation of api.api.operations.filter((each) => each.entityTag)) {
    const request = await cases[operation.id]?.good();
    assert.ok(request);
    const first = await send(operation, request);
    const tag = first.headers.get('etag');
    assert.ok(tag);
    const again = await send(operation, request, { headers: { 'if-none-match': tag } });
    assert.deepEqual([again.status, again.text], [304, '']);
    const changed = await send(operation, request, { headers: { 'if-none-match': '"other"' } });
    assert.equal(changed.status, 200);
  }
});

test('a declared operation that nothing carries out answers 404 in the error format', async () => {
  const { operations } = await import('@levee/contract/operations.ts');
  const served = new Set(api.api.operations.map((operation) => operation.id));
  const absent = operations.filter((operation) => !served.has(operation.id));
  for (const operation of absent) {
    const path = `/v1${operation.path.replaceAll(/\{\w+\}/g, '0190a5d0-0000-7000-8000-000000000000')}`;
    const reply = await api.raw(operation.method, path, { key: api.operatorKey });
    assert.equal(reply.status, 404, operation.id);
    assert.equal(reply.body.error, 'not_found');
  }
});

test('the document at /openapi.json lists what is served and nothing else', async () => {
  const { body } = await api.call('readOpenapi', {}, { key: world.holders.user.key });
  const listed = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = api.api.operations.map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(listed.sort(), served.sort());
});
