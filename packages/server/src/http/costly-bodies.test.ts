import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28']);
});
after(() => api.stop());

const budget = 1024 * 1024 - 2048;
/** As many copies of `piece` as a body may hold. */
const many = (piece: (index: number) => string) => {
  const pieces: string[] = [];
  for (let length = 0, index = 0; length < budget; index++) {
    const text = piece(index);
    pieces.push(text);
    length += text.length + 1;
  }
  pieces.pop();
  return pieces.join(',');
};

const numbers = `[${many(() => '1')}]`;
const strings = `[${many(() => '""')}]`;
const nested = `[${many((index) => `"2001:db8:${(index % 65535).toString(16)}::/${20 + (index % 100)}"`)}]`;
const members = many((index) => `"${index.toString(36)}":1`);
const flags = `[${many(() => '"syn"')}]`;
const empty = `[${many(() => '{}')}]`;
const long = `"${'t'.repeat(budget)}"`;
/** A thousand rules, each with as many faults as its share of the body allows. */
const faulty = `[${Array.from({ length: 1000 }, () => `{${Array.from({ length: 140 }, (_, index) => `"${index}":1`).join(',')}}`).join(',')}]`;

const base = '"username":"u","email":"e@example.net","password":"ochre-meadow-tin-61"';
const bodies: readonly [name: string, method: string, path: string, key: () => string, body: string][] = [
  ['rules of numbers', 'PUT', '/v1/firewall/rules?dst=203.0.113.7', () => user.key, `{"rules":${numbers}}`],
  ['rules of nothing', 'PUT', '/v1/firewall/rules?dst=203.0.113.7', () => user.key, `{"rules":${empty}}`],
  ['rules full of faults', 'PUT', '/v1/firewall/rules?dst=203.0.113.7', () => user.key, `{"rules":${faulty}}`],
  ['a set with many fields', 'PUT', '/v1/firewall/rules?dst=203.0.113.7', () => user.key, `{${members}}`],
  ['a rule with many fields', 'POST', '/v1/firewall/rule', () => user.key, `{${members}}`],
  ['a rule with a time and many fields', 'POST', '/v1/firewall/rule', () => user.key, `{"expires_at":5,${members}}`],
  ['a rule with a long time', 'POST', '/v1/firewall/rule', () => user.key, `{"expires_at":${long}}`],
  ['a rule with many flags', 'POST', '/v1/firewall/rule', () => user.key, `{"tcpflags":${flags}}`],
  ['a rule with a long text', 'POST', '/v1/firewall/rule', () => user.key, `{"descr":${long}}`],
  ['a packet with many fields', 'POST', '/v1/firewall/explain', () => user.key, `{${members}}`],
  ['a key with many fields', 'POST', '/v1/api-key', () => user.key, `{${members}}`],
  ['a key with many sources', 'POST', '/v1/api-key', () => user.key, `{"name":"x","sources":${nested}}`],
  ['a key with a long time', 'POST', '/v1/api-key', () => user.key, `{"name":"x","expires_at":${long}}`],
  ['a user with numbers for addresses', 'POST', '/v1/user', () => provider.key, `{${base},"ips":${numbers}}`],
  ['a user with texts for addresses', 'POST', '/v1/user', () => provider.key, `{${base},"ips":${strings}}`],
  ['a user with nested addresses', 'POST', '/v1/user', () => provider.key, `{${base},"ips":${nested}}`],
  ['a user with many fields', 'POST', '/v1/user', () => provider.key, `{${base},${members}}`],
  ['a user with a long address', 'POST', '/v1/user', () => provider.key, `{"email":${long.replace('t', 'a@')}}`],
  [
    'a user with a long password',
    'POST',
    '/v1/user',
    () => provider.key,
    `{"username":"uuu","email":"e@example.net","ips":[],"password":${long}}`,
  ],
  [
    'a provider with nested prefixes',
    'POST',
    '/v1/operator/provider',
    () => api.operatorKey,
    `{"name":"x","prefixes":${nested}}`,
  ],
];

/** Generous to a busy machine; what it guards against took 700 ms and more. */
const allowedMilliseconds = 250;

test('no body of a mebibyte keeps the process busy, and its answer stays small', async (context) => {
  for (const [name, method, path, key, text] of bodies) {
    for (const headers of method === 'POST' ? [{}, { 'idempotency-key': 'costly' }] : [{}]) {
      await context.test(
        `${name}${'idempotency-key' in headers ? ', under an Idempotency-Key' : ''}`,
        async (inner) => {
          let best = Number.POSITIVE_INFINITY;
          for (let time = 0; time < 4 && best > allowedMilliseconds / 3; time++) {
            const begin = process.cpuUsage();
            const reply = await request(api.url, method, path, { key: key(), text, headers });
            const { user: spent, system } = process.cpuUsage(begin);
            best = Math.min(best, (spent + system) / 1000);
            assert.equal(reply.status, 400, reply.text.slice(0, 300));
            assert.ok(reply.text.length < 64 * 1024 && reply.body.details.length <= 100, `${reply.text.length}`);
          }
          inner.diagnostic(`${best.toFixed(0)} ms`);
          assert.ok(best < allowedMilliseconds, `${best.toFixed(0)} ms`);
        },
      );
    }
  }
});
