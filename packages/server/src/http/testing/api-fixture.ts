/**
 * A served interface for one test file: real PostgreSQL, real HTTP, an operator, and a client that holds every answer
 * against its contract schema. Owns nothing that production code uses.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { errorBody } from '@levee/contract/errors.ts';
import { errorsOf, type Operation, type Role } from '@levee/contract/operation.ts';
import { operations } from '@levee/contract/operations.ts';
import { KEY_RANDOM_BYTES, makeKey } from '@levee/core/account/key.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { pino } from 'pino';
import type { ResolveHost } from '../../backends/webhook/resolve-host.ts';
import { createTargetJudge } from '../../backends/webhook/target.ts';
import { transact } from '../../commands/executor.ts';
import { createFirstOperator } from '../../commands/first-operator.ts';
import { done } from '../../commands/outcome.ts';
import { createEventStreams } from '../../events/streams.ts';
import type { Database } from '../../store/database.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { type Api, createApi } from '../api.ts';
import { keyHash } from '../key-hash.ts';
import type { AppliedStates } from '../object-answer.ts';
import { compileAnswerCheck } from '../schema-check.ts';
import type { HttpLimits } from '../server.ts';

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's shape was checked against its schema.
  readonly body: any;
  readonly text: string;
  readonly headers: Headers;
}

export interface Ask {
  readonly key?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
}

export interface ApiFixture {
  readonly postgres: TestPostgres;
  readonly database: Database;
  readonly api: Api;
  readonly url: string;
  readonly operatorKey: string;
  /** Calls an operation by its id, params by name; checks answer and status against the contract. */
  call(id: string, params?: Readonly<Record<string, string>>, ask?: Ask): Promise<Reply>;
  /** Any request below the listener's root; nothing is checked. */
  raw(method: string, path: string, ask?: Ask & { readonly text?: string }): Promise<Reply>;
  /** Another replica on the same database. */
  openReplica(): Promise<{ readonly api: Api; readonly url: string; readonly close: () => Promise<void> }>;
  /** A provider with these prefixes and a key of it. */
  provider(prefixes: readonly string[]): Promise<Holder>;
  user(provider: Holder, ips: readonly string[]): Promise<Holder>;
  key(account: string, options?: object): Promise<string>;
  stop(): Promise<void>;
}

export interface Holder {
  readonly uuid: string;
  readonly role: Role;
  readonly key: string;
  readonly email?: string;
}

/** No router is enrolled: what is stored is in force nowhere. */
export const nowhere: AppliedStates = {
  stateOf: () => ({ state: 'pending', reason: 'No router is enrolled.', applied: [] }),
};

/** No test asks the outside world what a name means. */
export const namesOfTests: ResolveHost = async (host) => {
  if (host.endsWith('.example.net')) return { ok: true, addresses: ['192.0.2.80', '2001:db8::80'] };
  if (host === 'inside.example.org') return { ok: true, addresses: ['192.0.2.81', '10.0.0.81'] };
  if (host.endsWith('.example.org')) return { ok: false, exists: true, reason: 'DNS failed (ETIMEOUT)' };
  return { ok: false, exists: false, reason: 'the name has no address' };
};

export const silent = pino({ level: 'silent' });

const byId = new Map(operations.map((operation) => [operation.id, operation]));
const answerChecks = new Map<string, (value: unknown) => string | undefined>();
const checkError = compileAnswerCheck(errorBody);

export function operationOf(id: string): Operation {
  const operation = byId.get(id);
  if (operation === undefined) throw new Error(`no operation ${id}`);
  return operation;
}

export interface ApiFixtureOptions {
  readonly states?: AppliedStates;
  readonly limits?: HttpLimits;
  readonly innerPools?: InnerPools;
  /** Requests a minute; absent: any number. */
  readonly rateLimit?: number;
  /** Whose X-Forwarded-For is believed; absent: nobody's. */
  readonly trustedProxies?: readonly string[];
  /** Stands between the interface and its database: to make it fail. */
  readonly wrapPool?: (pool: Database['pool']) => Database['pool'];
}

export async function startApi(options: ApiFixtureOptions = {}): Promise<ApiFixture> {
  const postgres = await startTestPostgres();
  const database = await postgres.createDatabase();
  const operatorKey = makeKey('operator', randomBytes(KEY_RANDOM_BYTES));
  await transact(database.pool, async (executor) =>
    done(
      await createFirstOperator(executor, {
        accountUuid: newUuid(),
        keyUuid: newUuid(),
        hash: keyHash(operatorKey),
      }),
    ),
  );
  const open = async (of: Database) => {
    const judge = createTargetJudge({ allow: ['127.0.0.0/8'], resolve: namesOfTests });
    const streams = createEventStreams(of.pool, { heartbeatMilliseconds: 50 });
    const api = createApi({
      pool: options.wrapPool?.(of.pool) ?? of.pool,
      ...(options.limits !== undefined && { limits: options.limits }),
      innerPools: options.innerPools,
      rateLimit: options.rateLimit,
      trustedProxies: options.trustedProxies,
      states: options.states ?? nowhere,
      eventStreams: streams,
      webhooks: { judge, wake: () => {} },
      wake: () => {},
      waitApplied: async () => 'not-enforced',
      routersChanged: async () => {},
      log: silent,
      isReady: async () => true,
    });
    const { port } = await api.listen({ host: '127.0.0.1', port: 0 });
    return { api, url: `http://127.0.0.1:${port}`, streams };
  };
  const { api, url, streams } = await open(database);
  let made = 0;

  const fixture: ApiFixture = {
    postgres,
    database,
    api,
    url,
    operatorKey,
    raw: (method, path, ask = {}) => request(url, method, path, ask),
    async call(id, params = {}, ask = {}) {
      const operation = operationOf(id);
      const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
      const reply = await request(url, operation.method, `/v1${path}${ask.query ?? ''}`, ask);
      checkReply(operation, reply);
      return reply;
    },
    async openReplica() {
      const other = postgres.openAgain(database);
      const replica = await open(other);
      return {
        ...replica,
        close: async () => {
          replica.streams.stop();
          await replica.api.close();
          await other.close();
        },
      };
    },
    async provider(prefixes) {
      const body = { name: `provider ${++made}`, prefixes };
      const { status, body: provider, text } = await fixture.call('createProvider', {}, { key: operatorKey, body });
      assert.equal(status, 200, text);
      return { uuid: provider.uuid, role: 'provider', key: await fixture.key(provider.uuid) };
    },
    async user(provider, ips) {
      const email = `user${++made}@example.net`;
      const body = { username: `user${made}`, email, password: `vermilion-lantern-${made}-quay`, ips };
      const { status, body: user, text } = await fixture.call('createUser', {}, { key: provider.key, body });
      assert.equal(status, 200, text);
      return { uuid: user.uuid, role: 'user', key: await fixture.key(user.uuid), email };
    },
    async key(account, options = {}) {
      const body = { account_uuid: account, name: 'test', ...options };
      const reply = await fixture.call('createApiKey', {}, { key: operatorKey, body });
      assert.equal(reply.status, 200, reply.text);
      return reply.body.key;
    },
    async stop() {
      streams.stop();
      await api.close(500);
      await postgres.stop();
    },
  };
  return fixture;
}

export async function request(
  url: string,
  method: string,
  path: string,
  ask: Ask & { readonly text?: string },
): Promise<Reply> {
  const headers: Record<string, string> = { ...ask.headers };
  if (ask.key !== undefined) headers['x-api-key'] = ask.key;
  const text = ask.text ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
  if (text !== undefined && headers['content-type'] === undefined) headers['content-type'] = 'application/json';
  const response = await fetch(url + path, { method, headers, ...(text !== undefined && { body: text }) });
  const answer = await textOf(response);
  let body: unknown;
  try {
    body = answer === '' ? undefined : JSON.parse(answer);
  } catch {
    body = undefined;
  }
  return { status: response.status, body, text: answer, headers: response.headers };
}

/** All of it; of a stream that never ends, what comes before its first heartbeat. */
async function textOf(response: Response): Promise<string> {
  const isEndless = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  if (!isEndless || response.body === null) return response.text();
  let text = '';
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (/^:/m.test(text)) break;
  }
  return text;
}

/** The status is one the operation declares, and the answer has the shape declared for it. */
export function checkReply(operation: Operation, reply: Reply): void {
  const where = `${operation.id} → ${reply.status} ${reply.text.slice(0, 500)}`;
  assert.match(reply.headers.get('x-request-id') ?? '', /^[\w.-]+$/, where);
  if (reply.status === 200) {
    const check = answerChecks.get(operation.id) ?? compileAnswerCheck(operation.answer);
    answerChecks.set(operation.id, check);
    assert.equal(check(operation.answerMedia === undefined ? reply.body : reply.text), undefined, where);
    return;
  }
  if (reply.status === 304) return;
  assert.equal(checkError(reply.body), undefined, where);
  const declared = errorsOf(operation) as readonly string[];
  assert.ok(declared.includes(reply.body.error), `${where}: not a declared error`);
}
