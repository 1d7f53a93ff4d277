/** The guarantee that gobgpd may die, at length: 40 kills, each dead for another while. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startBird } from '@levee/lab/bgp/bird.ts';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { startTestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { openInstallation } from './installation.ts';
import { killRounds, neverComes } from './kill-rounds.ts';

test('gobgpd killed 40 times, dead for up to 1.5 s, never costs the peer one of 500 routes', async (context) => {
  const ends: (() => Promise<unknown>)[] = [];
  try {
    const postgres = await startTestPostgres();
    ends.push(() => postgres.stop());
    const levee = await openInstallation(postgres);
    ends.push(() => levee.stop());
    const gobgpd = await startGobgpd({ neighbors: [{ address: '127.0.0.2', asn: 64500 }, neverComes] });
    ends.push(() => gobgpd.remove());
    const bird = await startBird({ neighbor: gobgpd });
    ends.push(() => bird.remove());
    levee.start(createGobgpSpeaker({ target: gobgpd.target, mark: testRoutes.mark }));
    await waitUntil(() => bird.established(), 'the session is up', 20_000);
    const begun = performance.now();
    const deadMilliseconds = (round: number) => (round % 7) * 250;
    await killRounds({ levee, gobgpd, bird, routes: 500, rounds: 40, deadMilliseconds });
    context.diagnostic(`40 kills in ${Math.round((performance.now() - begun) / 1000)} s`);
    assert.equal((await levee.rows()).filter(({ deleted }) => !deleted).length, 0);
  } finally {
    for (const end of ends.reverse()) await end();
  }
});
