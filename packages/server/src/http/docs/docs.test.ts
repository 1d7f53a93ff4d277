import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, startApi } from '../testing/api-fixture.ts';

let api: ApiFixture;

before(async () => {
  api = await startApi();
});
after(() => api.stop());

test('the description needs no key and is the document that is served with one', async () => {
  const open = await api.raw('GET', '/docs/openapi.json');
  const { text } = await api.call('readOpenapi', {}, { key: api.operatorKey });
  assert.equal(open.status, 200);
  assert.equal(open.text, text);
});

test('the page and what it loads come from here alone, under a policy that allows nothing else', async () => {
  const page = await api.raw('GET', '/docs/');
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  const sources = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1] ?? '');
  const own = sources.filter((source) => !source.startsWith('data:'));
  assert.ok(own.length >= 3);
  for (const source of own) {
    assert.doesNotMatch(source, /^(\w+:)?\/\//, source);
    const target = new URL(source, `${api.url}/docs`);
    assert.equal((await fetch(target)).status, 200, source);
  }
  const policy = page.headers.get('content-security-policy') ?? '';
  const directives = new Map(
    policy.split('; ').map((each) => [each.split(' ')[0], each.split(' ').slice(1).join(' ')] as const),
  );
  assert.equal(directives.get('default-src'), "'none'");
  assert.equal(directives.get('script-src'), "'self'");
  assert.equal(directives.get('connect-src'), "'self'");
  assert.doesNotMatch(policy, /https?:|\*/);
});

test('the script is sent compressed to those who take it so, plain to others, and not again to those who have it', async () => {
  const plain = await fetch(`${api.url}/docs/viewer.js`, { headers: { 'accept-encoding': 'identity' } });
  const packed = await fetch(`${api.url}/docs/viewer.js`, { headers: { 'accept-encoding': 'br;q=1.0, gzip;q=0.8' } });
  const refused = await fetch(`${api.url}/docs/viewer.js`, { headers: { 'accept-encoding': 'gzip;q=0' } });
  assert.equal(packed.headers.get('content-encoding'), 'gzip');
  assert.ok(Number(packed.headers.get('content-length')) < 2_000_000);
  const text = await plain.text();
  assert.ok(text.length > 2_000_000);
  assert.equal(await packed.text(), text);
  for (const response of [plain, refused]) assert.equal(response.headers.get('content-encoding'), null);
  await refused.body?.cancel();
  const tag = plain.headers.get('etag');
  assert.ok(tag);
  const again = await fetch(`${api.url}/docs/viewer.js`, { headers: { 'if-none-match': tag } });
  assert.deepEqual([again.status, await again.text()], [304, '']);
});

test('the description is sent compressed to those who take it so, and not again to those who have it', async () => {
  const from = (headers: Record<string, string>) => fetch(`${api.url}/docs/openapi.json`, { headers });
  const plain = await from({ 'accept-encoding': 'identity' });
  const packed = await from({ 'accept-encoding': 'gzip' });
  const text = await plain.text();
  assert.deepEqual(
    [plain, packed].map(({ headers }) => headers.get('content-encoding')),
    [null, 'gzip'],
  );
  for (const { headers } of [plain, packed]) assert.equal(headers.get('vary'), 'accept-encoding');
  assert.ok(Number(packed.headers.get('content-length')) < text.length / 5);
  assert.equal(await packed.text(), text);
  for (const { headers } of [plain, packed]) {
    const tag = headers.get('etag') ?? '';
    // One tag for both encodings: only a weak one may be that (RFC 9110, 8.8.3).
    assert.match(tag, /^W\/"/);
    for (const encoding of ['identity', 'gzip']) {
      const again = await from({ 'accept-encoding': encoding, 'if-none-match': tag });
      assert.deepEqual([again.status, await again.text()], [304, '']);
    }
  }
});

test('HEAD is answered, and another method told which there are', async () => {
  assert.equal((await api.raw('HEAD', '/docs')).status, 200);
  const wrong = await api.raw('POST', '/docs', { body: {} });
  assert.deepEqual([wrong.status, wrong.body.error], [405, 'method_not_allowed']);
  assert.equal(wrong.headers.get('allow'), 'GET, HEAD, OPTIONS');
});
