/** A second gobgpd as the peer: what it lists is what was asked, octet by octet and attribute by attribute. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type RouteKey, routeFamilies } from '@levee/core/flowspec/bgp-route.ts';
import { type Gobgpd, startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { openCalls } from '@levee/server/backends/bgp/gobgp/calls.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { apis, listedPaths, listing } from '@levee/server/backends/bgp/gobgp/messages.ts';
import { routeOfFields, testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { type Installation, openInstallation } from './installation.ts';
import { ofFour, ofSix } from './wanted-routes.ts';

let postgres: TestPostgres;
let levee: Installation;
let speaker: Gobgpd;
let peer: Gobgpd;
before(async () => {
  postgres = await startTestPostgres();
  levee = await openInstallation(postgres);
  speaker = await startGobgpd({ neighbors: [{ address: '127.0.0.3', asn: 64500 }] });
  const neighbors = [{ address: speaker.address, port: speaker.port, asn: 64500 }];
  peer = await startGobgpd({ address: '127.0.0.3', neighbors, passive: false, routerId: '192.0.2.3' });
  levee.start(createGobgpSpeaker({ target: speaker.target, mark: testRoutes.mark }));
});
after(async () => {
  await levee?.stop();
  await Promise.all([speaker?.remove(), peer?.remove()]);
  await postgres?.stop();
});

/** What it was told by its own peer, by the octets of the update. */
async function listedByPeer(): Promise<Map<RouteKey, string>> {
  const [api] = apis;
  assert.ok(api !== undefined);
  const calls = openCalls(peer.target);
  try {
    const found = new Map<RouteKey, string>();
    for (const family of routeFamilies) {
      const listed = await calls.list(`/${api.service}/ListPath`, listing(api, family));
      assert.ok(listed.ok, listed.ok ? '' : listed.message);
      for (const { key, content, isFromPeer } of listed.answers.flatMap((octets) => listedPaths(family, octets))) {
        assert.ok(isFromPeer, `${key} was announced at the peer itself`);
        found.set(key, content);
      }
    }
    return new Map([...found].sort());
  } finally {
    calls.close();
  }
}

test('every component and every action, of both families, and blackholes are at a gobgpd as they were asked, and go', async () => {
  const blackholes = ['198.18.0.9', '2001:db8::9'].map((dst) => ({ dst, components: {}, action: 'blackhole' }));
  const wanted = [...ofFour, ...ofSix, ...blackholes];
  const uuids = await levee.announce(wanted);
  await waitUntil(async () => (await listedByPeer()).size === wanted.length, 'the peer has them', 30_000);
  const asked = wanted.map((fields) => routeOfFields(fields)).map(({ key, content }) => [key, content] as const);
  assert.deepEqual(await listedByPeer(), new Map(asked.sort()));
  await levee.withdraw(uuids);
  await waitUntil(async () => (await listedByPeer()).size === 0, 'the peer has none', 20_000);
});
