/** A real gobgpd keeps to what every speaker keeps to, and what others announce through it is left to them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { routeOfFields, testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { holdToContract } from '@levee/server/backends/bgp/testing/speaker-contract.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';

test('gobgpd keeps to the contract beside a route of somebody else, and a killed one ends the session at once', async () => {
  const gobgpd = await startGobgpd({ neighbors: [] });
  try {
    const rib = ['--target', gobgpd.target, 'global', 'rib'];
    execFileSync('gobgp', [...rib, 'add', '-a', 'ipv4', '198.18.0.99/32', 'nexthop', '192.0.2.9']);
    const speaker = createGobgpSpeaker({ target: gobgpd.target, mark: testRoutes.mark });
    const session = await holdToContract(speaker);
    const listed = await session.list();
    assert.ok(listed.ok);
    assert.deepEqual([...listed.foreign], ['unicast4 20c6120063']);
    assert.match(execFileSync('gobgp', rib).toString(), /198\.18\.0\.99/);
    // What is told of a change is believed, and what was told to gobgpd remembered: neither may hide another's route.
    const ours = routeOfFields({ dst: '198.18.0.7', components: { protocol: 'udp' }, action: 'discard' });
    await session.announce([ours]);
    const seen = async () => {
      const found = await session.list([ours.key]);
      assert.ok(found.ok);
      return [found.ours.size, found.foreign.size];
    };
    assert.deepEqual(await seen(), [1, 0]);
    const match = ['-a', 'ipv4-flowspec', 'match', 'destination', '198.18.0.7/32', 'protocol', '==udp'];
    execFileSync('gobgp', [...rib, 'add', ...match, 'then', 'rate-limit', '1000']);
    await waitUntil(async () => (await seen()).join() === '0,1', 'it is known to be of another', 1_000);
    execFileSync('gobgp', [...rib, 'del', ...match]);
    await waitUntil(async () => (await seen()).join() === '0,0', 'it is known to be gone', 1_000);
    const begun = performance.now();
    await gobgpd.kill();
    assert.match(await session.ended, /gobgpd is gone/);
    assert.ok(performance.now() - begun < 1_000);
    await speaker.close();
  } finally {
    await gobgpd.remove();
  }
});
