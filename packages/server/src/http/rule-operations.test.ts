import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api.stop());

test('a created rule is answered as canonicalised and reads back the same', async () => {
  const body = { dst: '203.0.113.7/32', protocol: 'udp', action: 'drop', port: { src: { start: 11211 } }, descr: 'x' };
  const created = await api.call('createFirewallRule', {}, { key: user.key, body });
  assert.equal(created.status, 200, created.text);
  assert.equal(created.body.dst, '203.0.113.7');
  const read = await api.call('readFirewallRule', { uuid: created.body.uuid }, { key: user.key });
  assert.deepEqual(read.body, [created.body]);
});
