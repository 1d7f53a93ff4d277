/** Routers at which tunnels can end, as tests need them. Test code only. */
import assert from 'node:assert/strict';
import type { ApiFixture } from './api-fixture.ts';

/** Returns its uuid; its location is there already. */
export async function createTestRouter(
  api: ApiFixture,
  name: string,
  location: string,
  tunnelAddresses: readonly string[],
): Promise<string> {
  const body = { name, location, tunnel_addresses: tunnelAddresses };
  const reply = await api.call('createRouter', {}, { key: api.operatorKey, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.uuid;
}

/** The same router at each call: an address is one router's. For the location `fra1`. */
export async function ensureTestRouter(api: ApiFixture): Promise<void> {
  const { body } = await api.call('listRouters', {}, { key: api.operatorKey });
  const name = 'tunnels-end-here';
  if (body.some((each: { name: string }) => each.name === name)) return;
  await createTestRouter(api, name, 'fra1', ['192.0.2.9']);
}
