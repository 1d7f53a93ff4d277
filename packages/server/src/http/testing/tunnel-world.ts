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
