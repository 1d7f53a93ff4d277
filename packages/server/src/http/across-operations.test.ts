import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Operation } from '@levee/contract/operation.ts';
import { quotaKinds } from '@levee/contract/schemas/quota.ts';
import { type ApiFixture, checkReply, type Reply, request, startApi } from './testing/api-fixture.ts';
import type { Request } from './testing/case-kit.ts';
import { operationCases } from './testing/operation-cases.ts';
import { buildWorld } from './testing/world.ts';

let api: ApiFixture;
let cases: ReturnType<typeof operationCases>;

before(async () => {
  api = await startApi();
  cases = operationCases(api, await buildWorld(api));
});
after(() => api.stop());

async function goodOf(operation: Operation): Promise<Request> {
  const request = await cases[operation.id]?.good();
  assert.ok(request);
  return request;
}

async function send(url: string, operation: Operation, { params, ask }: Request, headers: object): Promise<Reply> {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params?.[name] ?? '');
  const all = { ...ask.headers, ...(headers as Record<string, string>) };
  const reply = await request(url, operation.method, `/v1${path}${ask.query ?? ''}`, { ...ask, headers: all });
  checkReply(operation, reply);
  return reply;
}

/** Everything that operations write is told there, in their own transactions: what they did is counted by it. */
async function effects(): Promise<number> {
  const { rows } = await api.database.pool.query<{ n: number }>('select count(*) as n from audit');
  return rows[0]?.n ?? 0;
}

test('every POST under an Idempotency-Key is carried out once, and answered alike by another replica and after a restart', async (context) => {
  const posts = api.api.operations.filter((operation) => operation.method === 'POST');
  assert.ok(posts.length > 10);
  const replica = await api.openReplica();
  const asked: { operation: Operation; good: Request; headers: object; first: Reply }[] = [];
  try {
    for (const operation of posts) {
      await context.test(operation.id, async () => {
        const good = await goodOf(operation);
        const headers = { 'idempotency-key': `across-${operation.id}` };
        const before = await effects();
        // At once on both: one is carried out, the other gets its answer.
        const [here, there] = await Promise.all(
          [api.url, replica.url].map((url) => send(url, operation, good, headers)),
        );
        assert.deepEqual([here?.status, there?.text], [200, here?.text]);
        const replayed = [here, there].filter((reply) => reply?.headers.get('idempotent-replayed') === 'true');
        assert.equal(replayed.length, 1);
        const once = await effects();
        if (operation.access === 'read') assert.equal(once, before);
        asked.push({ operation, good, headers, first: here as Reply });
      });
    }
  } finally {
    await replica.close();
  }
  const before = await effects();
  const restarted = await api.openReplica();
  try {
    for (const { operation, good, headers, first } of asked) {
      const again = await send(restarted.url, operation, good, headers);
      assert.deepEqual([again.text, again.headers.get('idempotent-replayed')], [first.text, 'true'], operation.id);
    }
  } finally {
    await restarted.close();
  }
  assert.equal(await effects(), before, 'a replay does nothing');
});

test('every POST that waits is replayed with what became of it, by another replica too', async (context) => {
  const posts = api.api.operations.filter(({ method, waits }) => method === 'POST' && waits);
  assert.ok(posts.length >= 4);
  const replica = await api.openReplica();
  try {
    for (const operation of posts) {
      await context.test(operation.id, async () => {
        const good = await goodOf(operation);
        const headers = { 'idempotency-key': `waited-${operation.id}`, prefer: 'wait=1' };
        const first = await send(api.url, operation, good, headers);
        assert.match(first.headers.get('preference-applied') ?? '', /^wait=1, outcome=/);
        const again = await send(replica.url, operation, good, headers);
        assert.deepEqual([again.status, again.text], [200, first.text]);
        assert.equal(again.headers.get('preference-applied'), first.headers.get('preference-applied'));
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
      });
    }
  } finally {
    await replica.close();
  }
});

test('a POST at once on two replicas has as much effect as one', async () => {
  const posts = api.api.operations.filter(({ method, access }) => method === 'POST' && access === 'write');
  const replica = await api.openReplica();
  try {
    for (const operation of posts) {
      const alone = await goodOf(operation);
      const before = await effects();
      await send(api.url, operation, alone, { 'idempotency-key': `alone-${operation.id}` });
      const usual = (await effects()) - before;
      const twice = await goodOf(operation);
      const between = await effects();
      const headers = { 'idempotency-key': `twice-${operation.id}` };
      await Promise.all([api.url, replica.url].map((url) => send(url, operation, twice, headers)));
      assert.equal((await effects()) - between, usual, operation.id);
    }
  } finally {
    await replica.close();
  }
});

test('every GET of one object has an entity tag', () => {
  const ones = api.api.operations.filter(({ method, params, answer, answerMedia }) => {
    const shape = answer as { type?: string; maxItems?: number };
    const isList = shape.type === 'array' && shape.maxItems !== 1;
    return method === 'GET' && params !== undefined && !isList && answerMedia !== 'text/event-stream';
  });
  assert.ok(ones.length >= 5);
  const without = ones.filter(({ entityTag }) => !entityTag).map(({ id }) => id);
  assert.deepEqual(without, [], 'their tags and 304 are met in operation-status.test.ts');
});

test('every operation that waits says what became of the change, also when it is asked to wait for nothing', async (context) => {
  const waiting = api.api.operations.filter((operation) => operation.waits);
  assert.ok(waiting.length > 3);
  for (const operation of waiting) {
    await context.test(operation.id, async () => {
      for (const seconds of [0, 1]) {
        const reply = await send(api.url, operation, await goodOf(operation), { prefer: `wait=${seconds}` });
        assert.equal(reply.status, 200, reply.text);
        const applied = reply.headers.get('preference-applied') ?? '';
        assert.match(applied, new RegExp(`^wait=${seconds}, outcome=(applied|failed|timeout|not-enforced)$`));
      }
      const unasked = await send(api.url, operation, await goodOf(operation), {});
      assert.equal(unasked.headers.get('preference-applied'), null);
    });
  }
});

test('every POST by which an account comes to hold one more object is bound by a quota', () => {
  const creating = api.api.operations.filter(({ method, params, body, answer, roles }) => {
    const made = (answer as { properties?: object }).properties ?? {};
    const isOfAccount = ['owner_uuid', 'account_uuid', 'provider_uuid'].some((name) => Object.hasOwn(made, name));
    const isNew = method === 'POST' && params === undefined && !Object.hasOwn(body?.properties ?? {}, 'user_uuid');
    return isNew && isOfAccount && Object.hasOwn(made, 'uuid') && !(roles.length === 1 && roles[0] === 'operator');
  });
  assert.ok(creating.length >= 6);
  const free = creating.filter(({ errors }) => !errors.includes('quota_exceeded')).map(({ id }) => id);
  assert.deepEqual(free, [], 'that they are refused is met in operation-status.test.ts');
});

test('every refusal by a quota tells what the account holds, in the same words for every kind', async (context) => {
  const { pool } = api.database;
  const bound = api.api.operations.filter(({ errors }) => errors.includes('quota_exceeded'));
  assert.ok(bound.length >= 8);
  for (const operation of bound) {
    await context.test(operation.id, async () => {
      const good = await goodOf(operation);
      const set = `insert into quota (account_uuid, kind, maximum) select $1, kind, 1000 from unnest($2::text[]) kind`;
      await pool.query(set, [good.account, quotaKinds]);
      const ask = { key: api.operatorKey };
      const { body: held } = await api.call('readQuota', { account_uuid: good.account }, ask);
      for (const kind of quotaKinds) {
        const values = [good.account, kind, held.quotas[kind].used];
        await pool.query('update quota set maximum = $3 where account_uuid = $1 and kind = $2', values);
      }
      try {
        const { status, body, text } = await send(api.url, operation, good, {});
        assert.equal(status, 429, text);
        const [{ quota, message }] = body.details;
        const { used } = held.quotas[quota.kind];
        assert.deepEqual(quota, { kind: quota.kind, maximum: used, used });
        assert.ok(message.startsWith(`${quota.kind}: the account holds ${used} of at most ${used}, which`), message);
      } finally {
        await pool.query('delete from quota where account_uuid = $1', [good.account]);
      }
    });
  }
});
