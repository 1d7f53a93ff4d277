import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { type ServerHandle, startServer } from './main.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-main-${process.pid}-`));
const log = pino({ level: 'silent' });
after(() => rmSync(folder, { recursive: true, force: true }));

async function start(dataDirectory: string, more: object = {}): Promise<ServerHandle> {
  const started = await startServer({ listen: { host: '127.0.0.1', port: 0 }, dataDirectory, log, ...more });
  assert.ok(started.ok, started.ok ? '' : started.message);
  return started.server;
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the answer of an operation.
  readonly body: any;
}

async function ask(
  server: ServerHandle,
  key: string,
  method: string,
  path: string,
  body?: object,
  more = {},
): Promise<Reply> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', ...more };
  const response = await fetch(`${server.address}/v1${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(Date.now() < deadline, `${what}: not within 20 s`);
    await delay(50);
  }
}

test('a new installation makes an operator key for its owner alone, and everything outlives a restart', async () => {
  const data = join(folder, 'fresh');
  let server = await start(data, { rateLimit: 5000 });
  try {
    const operator = server.newOperatorKey ?? '';
    assert.equal(readFileSync(join(data, 'operator.key'), 'utf8').trim(), operator);
    assert.equal(statSync(join(data, 'operator.key')).mode & 0o777, 0o600);
    assert.equal(statSync(data).mode & 0o777, 0o700);
    const provider = await ask(server, operator, 'POST', '/operator/provider', {
      name: 'p',
      prefixes: ['203.0.113.0/24'],
    });
    const body = { account_uuid: provider.body.uuid, name: 'k' };
    const repeat = { 'idempotency-key': 'the-key' };
    const issued = await ask(server, operator, 'POST', '/api-key', body, repeat);
    const { key } = issued.body;
    const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
    const kept = await ask(server, key, 'POST', '/firewall/rule', rule);
    assert.equal(kept.headers.get('ratelimit-policy'), '"default";q=5000;w=60');

    // Nobody enforces: there is nothing to wait for, and the state says why.
    const begin = Date.now();
    const waited = await ask(server, key, 'POST', '/firewall/rule', rule, { prefer: 'wait=20' });
    assert.ok(Date.now() - begin < 10_000);
    assert.equal(waited.headers.get('preference-applied'), 'wait=20, outcome=not-enforced');
    assert.equal(waited.body.state, 'pending');
    assert.match(waited.body.state_reason, /router/i);

    const soon = new Date(Date.now() + 1200).toISOString();
    const brief = await ask(server, key, 'POST', '/firewall/rule', { ...rule, expires_at: soon });
    const tried = await ask(server, key, 'PATCH', `/firewall/rule/${kept.body.uuid}`, {
      action: 'accept',
      confirm_within: 10,
    });
    assert.equal(tried.body.action, 'accept');
    await server.database.pool.query(`update confirmation set deadline = now() where change_uuid = $1`, [
      tried.body.change_uuid,
    ]);
    await until('the expired rule goes', async () => {
      const { status } = await ask(server, key, 'GET', `/firewall/rule/${brief.body.uuid}`);
      return status === 404 ? true : undefined;
    });
    await until('the unconfirmed change is undone', async () => {
      const { body } = await ask(server, key, 'GET', `/firewall/rule/${kept.body.uuid}`);
      return body[0].action === 'drop' ? true : undefined;
    });
    const late = await ask(server, key, 'POST', `/firewall/confirm/${tried.body.change_uuid}`);
    assert.deepEqual([late.status, late.body.details[0].code], [409, 'too_late']);

    await server.close();
    server = await start(data);
    assert.equal(server.newOperatorKey, undefined);
    const listed = await ask(server, key, 'GET', '/firewall/rule');
    assert.deepEqual(
      listed.body.map((each: { uuid: string }) => each.uuid),
      [kept.body.uuid, waited.body.uuid],
    );
    const again = await ask(server, operator, 'POST', '/api-key', body, repeat);
    assert.equal(again.body.key, key, 'the repeated request is answered as before the restart');
  } finally {
    await server.close();
  }
});

test('an operator key of any form that was given works; a port that is taken is told in words', async () => {
  const data = join(folder, 'given');
  const operatorKey = 'a phrase that is chosen'.replaceAll(' ', '-').padEnd(40, '!');
  const server = await start(data, { operatorKey });
  try {
    const me = await ask(server, operatorKey, 'GET', '/whoami');
    assert.deepEqual([me.status, me.body.account.role], [200, 'operator']);
    assert.throws(() => statSync(join(data, 'operator.key')), /ENOENT/);
    const { port } = new URL(server.address);
    const database = server.database.address;
    assert.ok('socketDirectory' in database);
    const databaseUrl = `postgresql://${database.user}@/${database.database}?host=${encodeURIComponent(database.socketDirectory)}`;
    const second = await startServer({
      listen: { host: '127.0.0.1', port: Number(port) },
      dataDirectory: join(folder, 'second'),
      databaseUrl,
      log,
    });
    assert.ok(!second.ok);
    assert.match(second.message, /EADDRINUSE|in use/);
    const weak = await startServer({
      listen: { host: '127.0.0.1', port: 0 },
      dataDirectory: join(folder, 'weak'),
      databaseUrl,
      operatorKey: 'short',
      log,
    });
    assert.ok(!weak.ok);
  } finally {
    await server.close();
  }
});

test('a start that died between writing the key and storing it goes on with that key', async () => {
  const other = join(folder, 'half');
  const server = await start(other);
  const key = server.newOperatorKey ?? '';
  await server.database.pool.query('delete from account');
  await server.close();
  writeFileSync(join(other, 'operator.key'), `${key}\n`, { mode: 0o600 });
  const again = await start(other);
  try {
    assert.equal(again.newOperatorKey, key);
    assert.equal((await ask(again, key, 'GET', '/whoami')).status, 200);
  } finally {
    await again.close();
  }
});
