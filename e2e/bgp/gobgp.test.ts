/** A real gobgpd keeps to what every speaker keeps to, and what others announce through it is left to them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { holdToContract } from '@levee/server/backends/bgp/testing/speaker-contract.ts';

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
    const begun = performance.now();
    await gobgpd.kill();
    assert.match(await session.ended, /gobgpd is gone/);
    assert.ok(performance.now() - begun < 1_000);
    await speaker.close();
  } finally {
    await gobgpd.remove();
  }
});
