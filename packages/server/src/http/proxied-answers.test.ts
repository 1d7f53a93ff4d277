import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Operation } from '@levee/contract/operation.ts';
import { type ApiFixture, type Ask, type Reply, request, startApi } from './testing/api-fixture.ts';
import type { Request } from './testing/case-kit.ts';
import { operationCases } from './testing/operation-cases.ts';
import { startProxy, type ValidatingProxy } from './testing/prism.ts';
import { buildWorld } from './testing/world.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-proxied-${process.pid}-`));
let api: ApiFixture;
let cases: ReturnType<typeof operationCases>;
/** Holds requests and answers to the document. */
let strict: ValidatingProxy;
/** Holds answers to it, whatever was asked. */
let lenient: ValidatingProxy;

before(async () => {
  api = await startApi();
  cases = operationCases(api, await buildWorld(api));
  const file = join(folder, 'openapi.json');
  writeFileSync(file, (await api.raw('GET', '/docs/openapi.json')).text);
  [strict, lenient] = await Promise.all([
    startProxy(file, `${api.url}/v1`, true),
    startProxy(file, `${api.url}/v1`, false),
  ]);
});
after(async () => {
  await Promise.all([strict?.stop(), lenient?.stop()]);
  await api?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** It leaves some requests without any answer. */
const patience = { timeout: 60_000 };

/** The proxy reads an answer to its end before it judges it: one that never ends is beyond it. */
const ends = ({ answerMedia }: Operation) => answerMedia !== 'text/event-stream';

function send(
  proxy: ValidatingProxy,
  operation: Operation,
  { params, ask }: Request,
  more: Ask & { readonly text?: string } = {},
): Promise<Reply> {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params?.[name] ?? '');
  const merged = { ...ask, ...more };
  return request(proxy.url, operation.method, `${path}${merged.query ?? ''}`, merged);
}

/** What the proxy has to say, of itself or of what it passed on. */
function complaintOf(reply: Reply): string | undefined {
  const violations = reply.headers.get('sl-violations');
  const own = reply.headers.get('content-type')?.startsWith('application/problem+json');
  if (violations === null && !own) return undefined;
  return `${reply.status} ${violations ?? ''} ${reply.text}`;
}

test('no request that is carried out, and no answer to it, breaks the document', patience, async () => {
  const complaints: string[] = [];
  for (const operation of api.api.operations.filter(ends)) {
    const good = await cases[operation.id]?.good();
    assert.ok(good, operation.id);
    const reply = await send(strict, operation, good);
    const complaint = complaintOf(reply);
    if (complaint !== undefined || reply.status !== 200) complaints.push(`${operation.id}: ${complaint ?? reply.text}`);
  }
  assert.deepEqual(complaints, []);
});

test('no refusal breaks the document', patience, async () => {
  const complaints: string[] = [];
  let refusals = 0;
  for (const operation of api.api.operations) {
    const { good, bad } = cases[operation.id] ?? {};
    assert.ok(good && bad, operation.id);
    // Without a key the proxy answers itself, and a body that is no JSON it neither passes on nor answers.
    const wrong: (() => Promise<Reply>)[] = [
      async () => send(lenient, operation, await good(), { key: 'lv_u_mistyped' }),
      async () => send(lenient, operation, await good(), { query: '?no_such=1' }),
      ...Object.values(bad).map((make) => async () => send(lenient, operation, await make())),
    ];
    if (operation.method !== 'GET') {
      if (operation.body)
        wrong.push(async () => send(lenient, operation, await good(), { body: { no_such_field: 1 } }));
      wrong.push(async () => {
        const headers = { 'content-type': 'text/plain' };
        return send(lenient, operation, await good(), { text: 'dst=203.0.113.7', headers });
      });
    }
    for (const meet of wrong) {
      const reply = await meet();
      refusals++;
      const complaint = complaintOf(reply);
      if (complaint !== undefined || reply.status < 400) {
        complaints.push(`${operation.id}: ${complaint ?? `${reply.status} ${reply.text}`}`);
      }
    }
  }
  assert.ok(refusals > api.api.operations.length * 3);
  assert.deepEqual(complaints, []);
});

test('the proxy would tell: an answer that breaks the document is not passed on', patience, async () => {
  const file = join(folder, 'other.json');
  const document = JSON.parse((await api.raw('GET', '/docs/openapi.json')).text);
  document.components.schemas.WhoAmI.properties.account = { type: 'integer' };
  writeFileSync(file, JSON.stringify(document));
  const other = await startProxy(file, `${api.url}/v1`, false);
  try {
    const reply = await request(other.url, 'GET', '/whoami', { key: api.operatorKey });
    assert.match(complaintOf(reply) ?? '', /account/);
    assert.equal(reply.status, 500);
  } finally {
    await other.stop();
  }
});
