/**
 * What the tests in the guest paste at the customers' is what customers get: for each kind of tunnel that is tried there,
 * `GET /tunnel/{uuid}/config` of a real server is held to the text that the guest's network makes of what the router is told.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, post } from '@levee/server/agents/testing/agent-client.ts';
import { type ApiFixture, type Holder, request, startApi } from '@levee/server/http/testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from '@levee/server/http/testing/control-plane.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { customersText, guestRouter, guestTunnels, routerAddresses } from './network.ts';

let api: ApiFixture;
let plane: ControlPlane;
let user: Holder;

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database);
  const provider = await api.provider(['203.0.113.0/24', '2001:db8:7000::/36']);
  user = await api.user(provider, ['203.0.113.0/24', '2001:db8:7000::/36']);
});
after(async () => {
  await plane?.stop();
  await api?.stop();
});

test('the guest’s customers paste what the interface answers, octet by octet, for every kind of tunnel', async () => {
  const { location, router: name } = guestRouter;
  await request(plane.url, 'POST', '/v1/operator/location', { key: api.operatorKey, body: { name: location } });
  const announced = { name, location, tunnel_addresses: Object.values(routerAddresses) };
  const router = await request(plane.url, 'POST', '/v1/operator/router', { key: api.operatorKey, body: announced });
  const enrolled = await post(plane.url, '/agent/v1/enroll', { token: router.body.enrollment_token });
  const stream = await openStream(plane.url, String(enrolled.body.key));
  try {
    for (const { type, ips, endpoint, keyed } of guestTunnels) {
      const body = { type, ips, endpoint, ...(keyed === undefined ? {} : { keyed }) };
      const made = await request(plane.url, 'POST', '/v1/tunnel', { key: user.key, body });
      assert.equal(made.status, 200, made.text);
      const { uuid } = made.body;
      await waitUntil(() => stream.tunnels.has(uuid), 'the router to be told of the tunnel');
      const told = stream.tunnels.get(uuid);
      assert.ok(told);
      const path = `/v1/tunnel/${uuid}/config?format=iproute2`;
      const { status, text } = await request(plane.url, 'GET', path, { key: user.key });
      assert.equal(status, 200, text);
      assert.equal(customersText(told), text, `${type} to ${endpoint}`);
    }
  } finally {
    stream.close();
  }
});
