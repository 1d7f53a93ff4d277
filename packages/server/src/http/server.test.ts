import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { silenceServer } from '../store/testing/silent-server.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { createApi } from './api.ts';
import { type ApiFixture, type Holder, nowhere, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let user: Holder;
const folder = mkdtempSync(join(tmpdir(), `levee-http-${process.pid}-`));

before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
});
after(async () => {
  await api.stop();
  rmSync(folder, { recursive: true, force: true });
});

function otherApi(log = pino({ level: 'silent' })) {
  return createApi({
    pool: api.database.pool,
    states: nowhere,
    wake: () => {},
    waitApplied: async () => 'not-enforced',
    routersChanged: async () => {},
    log,
    isReady: async () => true,
  });
}

test('a GET with a JSON body is answered and the connection serves the next request', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { port } = new URL(api.url);
  const ports = new Set<number | undefined>();
  for (const body of ['{}', '{"not":"looked at"}', '{broken', '']) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'x-api-key': user.key, 'content-type': 'application/json', 'content-length': body.length };
      const outgoing = httpRequest({ port, agent, path: '/v1/whoami', headers }, (incoming) => {
        ports.add(outgoing.socket?.localPort);
        incoming.resume().on('end', () => resolve(incoming.statusCode));
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
    assert.equal(status, 200, body);
  }
  agent.destroy();
  assert.equal(ports.size, 1, 'one connection for all');
});

test('a well-formed request id is kept, another is replaced', async () => {
  const idOf = async (id: string) =>
    (await api.raw('GET', '/v1/whoami', { key: user.key, headers: { 'x-request-id': id } })).headers.get(
      'x-request-id',
    );
  assert.equal(await idOf('trace-7.a_B'), 'trace-7.a_B');
  for (const odd of ['x'.repeat(129), 'a b', '<b>', 'u"']) {
    assert.match((await idOf(odd)) ?? '', /^[0-9a-f-]{36}$/);
  }
});

test('HEAD answers as GET does without a body; OPTIONS and 405 name the methods', async () => {
  const head = await api.raw('HEAD', '/v1/whoami', { key: user.key });
  assert.deepEqual([head.status, head.text], [200, '']);
  assert.ok(Number(head.headers.get('content-length')) > 10);
  const options = await api.raw('OPTIONS', '/v1/firewall/rule');
  assert.deepEqual([options.status, options.headers.get('allow')], [204, 'POST, GET, HEAD, OPTIONS']);
  const wrong = await api.raw('DELETE', '/v1/firewall/rule', { key: user.key });
  assert.deepEqual([wrong.status, wrong.body.error], [405, 'method_not_allowed']);
  assert.equal(wrong.headers.get('allow'), 'POST, GET, HEAD, OPTIONS');
  const unknown = await api.raw('PATCH', '/v1/nothing', { key: user.key });
  assert.deepEqual([unknown.status, unknown.body.error], [404, 'not_found']);
});

test('a body that aims at a prototype is refused as invalid JSON', async () => {
  for (const text of [
    '{"__proto__":{"admin":true}}',
    '{"src":{"__proto__":1}}',
    '{"\\u005f\\u005fproto__":{}}',
    '[{"constructor":{"prototype":{}}}]',
  ]) {
    const reply = await api.raw('POST', '/v1/firewall/rule', { key: user.key, text });
    assert.deepEqual([reply.status, reply.body.error], [400, 'invalid_json'], text);
  }
});

test('bytes that are not UTF-8 and nesting without end are refused as invalid JSON', async () => {
  const { port } = new URL(api.url);
  const send = (body: Buffer) =>
    new Promise<string>((resolve, reject) => {
      const headers = { 'x-api-key': user.key, 'content-type': 'application/json' };
      const outgoing = httpRequest({ port, method: 'POST', path: '/v1/firewall/rule', headers }, (incoming) => {
        let text = '';
        incoming.on('data', (part) => {
          text += part;
        });
        incoming.on('end', () => resolve(text));
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  for (const body of [Buffer.from([0x22, 0xff, 0x22]), Buffer.from('['.repeat(500_000))]) {
    assert.equal(JSON.parse(await send(body)).error, 'invalid_json');
  }
});

test('the unix socket serves the same and only its owner may use it', async () => {
  const other = otherApi();
  const socketPath = join(folder, 'control.sock');
  await other.listen({ host: '127.0.0.1', port: 0 }, socketPath);
  try {
    assert.equal(statSync(socketPath).mode & 0o777, 0o600);
    const status = await new Promise((resolve, reject) => {
      const outgoing = httpRequest({ socketPath, path: '/v1/whoami', headers: { 'x-api-key': user.key } }, (incoming) =>
        incoming.resume().on('end', () => resolve(incoming.statusCode)),
      );
      outgoing.on('error', reject);
      outgoing.end();
    });
    assert.equal(status, 200);
  } finally {
    await other.close(100);
  }
  assert.throws(() => statSync(socketPath), /ENOENT/);
});

test('closing lets a request under way finish and refuses new ones', async () => {
  const other = otherApi();
  const { port } = await other.listen({ host: '127.0.0.1', port: 0 });
  const slow = connect(port, '127.0.0.1');
  const body = JSON.stringify({ dst: '203.0.113.7', protocol: 'udp', action: 'drop' });
  slow.write(
    `POST /v1/firewall/rule HTTP/1.1\r\nhost: x\r\nx-api-key: ${user.key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  );
  const received = new Promise<string>((resolve, reject) => {
    let text = '';
    slow.on('data', (part) => {
      text += part;
    });
    slow.on('end', () => resolve(text));
    slow.on('error', reject);
  });
  await new Promise((resolve) => setImmediate(resolve));
  // The request has arrived when another one, sent later on the same server, has been answered.
  await fetch(`http://127.0.0.1:${port}/livez`, { headers: { connection: 'close' } });
  const begin = Date.now();
  const closing = other.close(10_000);
  slow.write(body.slice(5));
  assert.match(await received, /^HTTP\/1\.1 (200|503)/);
  await closing;
  assert.ok(Date.now() - begin < 5_000, 'no longer than the request');
  await assert.rejects(fetch(`http://127.0.0.1:${port}/livez`));
});

test('neither keys nor passwords nor bodies appear in the log, at any level', async () => {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _, next) {
      lines.push(String(chunk));
      next();
    },
  });
  const other = otherApi(pino({ level: 'trace' }, stream));
  const { port } = await other.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${port}`;
  const headers = { 'x-api-key': user.key, 'content-type': 'application/json' };
  const body = JSON.stringify({ email: 'secret@example.net', password: 'do-not-write-this' });
  await fetch(`${url}/v1/user/reset-password?token=hidden`, { method: 'POST', headers, body });
  await fetch(`${url}/v1/firewall/rule`, { method: 'POST', headers, body: '{broken' });
  await fetch(`${url}/v1/whoami`, { headers });
  await other.close(100);
  const all = lines.join('');
  assert.ok(lines.length >= 3, 'requests are logged at trace');
  for (const secret of [user.key, 'do-not-write-this', 'secret@example.net', 'hidden'])
    assert.ok(!all.includes(secret), secret);
});

/** Another interface on the same database, which says so of itself. */
async function whereReadyIs(isReady: () => Promise<boolean>, ask: (url: string) => Promise<void>): Promise<void> {
  const other = createApi({
    pool: api.database.pool,
    states: nowhere,
    wake: () => {},
    waitApplied: async () => 'not-enforced',
    routersChanged: async () => {},
    log: pino({ level: 'silent' }),
    isReady,
  });
  const { port } = await other.listen({ host: '127.0.0.1', port: 0 });
  try {
    await ask(`http://127.0.0.1:${port}`);
  } finally {
    await other.close(100);
  }
}

test('health needs no key: alive always, ready only with the database', async () => {
  assert.equal((await api.raw('GET', '/livez')).status, 200);
  assert.equal((await api.raw('GET', '/readyz')).status, 200);
  const away = async () => {
    throw new Error('away');
  };
  await whereReadyIs(away, async (url) => {
    const reply = await fetch(`${url}/readyz`);
    assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, '1']);
    assert.equal(((await reply.json()) as { error: string }).error, 'unavailable');
    assert.equal((await fetch(`${url}/livez`)).status, 200);
  });
});

test('while the database is silent readiness is denied within two seconds, however many ask, and comes back with it', async () => {
  let asked = 0;
  const goOn = silenceServer(api.postgres.server.pid);
  const select = async () => {
    asked++;
    return (await api.database.pool.query('select 1')).rowCount === 1;
  };
  try {
    await whereReadyIs(select, async (url) => {
      const begin = performance.now();
      const replies = await Promise.all([1, 2, 3, 4].map(() => fetch(`${url}/readyz`)));
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([503]));
      const milliseconds = performance.now() - begin;
      assert.ok(milliseconds < 3_500, `${milliseconds} ms`);
      assert.equal(asked, 1);
      goOn();
      await waitUntil(async () => (await fetch(`${url}/readyz`)).status === 200, 'the service to be ready');
    });
  } finally {
    goOn();
  }
});
