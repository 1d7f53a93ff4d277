/** gobgpd killed again and again, with a peer watched all the while: nothing that is announced may go there, not for a moment. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bird } from '@levee/lab/bgp/bird.ts';
import type { Gobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { fewestDuring } from './fewest.ts';
import type { Installation } from './installation.ts';
import { canonical } from './wanted-routes.ts';

/** As in deploy/bgp/gobgpd.toml: waiting for it, gobgpd tells no peer anything before Levee has announced all again. */
export const neverComes = { address: '127.255.255.254', asn: 64500 };

export interface KillRounds {
  readonly levee: Installation;
  readonly gobgpd: Gobgpd;
  readonly bird: Bird;
  /** At most 16 000. */
  readonly routes: number;
  readonly rounds: number;
  /** How long gobgpd stays dead in this round; 0 when absent. */
  readonly deadMilliseconds?: (round: number) => number;
}

/** Throws when the peer had fewer at a moment, or others in the end. Everything is withdrawn again. */
export async function killRounds(options: KillRounds): Promise<{ readonly atPeerMilliseconds: number }> {
  const { levee, gobgpd, bird, routes, rounds, deadMilliseconds = () => 0 } = options;
  const fields = Array.from({ length: routes }, (_, index) => ({
    dst: `198.18.${10 + (index >> 8)}.${index & 255}`,
    components: { protocol: 'udp', 'source-port': '53' },
    action: 'discard',
  }));
  const uuids = await levee.announce(fields);
  const begun = performance.now();
  await waitUntil(async () => (await bird.flowCount()) === routes, 'the peer has all', 30_000);
  const atPeerMilliseconds = Math.round(performance.now() - begun);
  await waitUntil(levee.areActive, 'all are active');
  const fewest = await fewestDuring(bird, async () => {
    for (let round = 0; round < rounds; round++) {
      const at = `in round ${round + 1}`;
      await gobgpd.kill();
      await delay(deadMilliseconds(round));
      await gobgpd.start();
      await waitUntil(() => bird.established(), `the session is up again ${at}`, 30_000);
      // What is announced now travels behind all that was before.
      const [extra = ''] = await levee.announce([{ dst: `198.18.9.${round}`, components: {}, action: 'discard' }]);
      await waitUntil(async () => (await bird.flowCount()) > routes, `the next change arrives ${at}`, 30_000);
      await levee.withdraw([extra]);
      await waitUntil(async () => (await bird.flowCount()) === routes, `and goes ${at}`, 30_000);
    }
  });
  assert.equal(fewest, routes, 'the peer had fewer at a moment');
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(fields));
  await levee.withdraw(uuids);
  await waitUntil(async () => (await bird.flowCount()) === 0, 'the peer has none', 30_000);
  return { atPeerMilliseconds };
}
