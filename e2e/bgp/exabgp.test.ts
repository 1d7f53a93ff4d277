/** A real ExaBGP with the file that is given out, running `levee exabgp`: what BIRD has behind it is what was asked. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BgpRoute } from '@levee/core/flowspec/bgp-route.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { startBird } from '@levee/lab/bgp/bird.ts';
import { freePort } from '@levee/lab/bgp/daemon.ts';
import { createExabgpSpeaker } from '@levee/server/backends/bgp/exabgp/exabgp-speaker.ts';
import type { SpeakerSession } from '@levee/server/backends/bgp/port.ts';
import { routeOfFields } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { holdToContract } from '@levee/server/backends/bgp/testing/speaker-contract.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { startExabgp } from './exabgp-daemon.ts';
import { fewestDuring } from './fewest.ts';
import { openInstallation } from './installation.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
const removals: (() => unknown)[] = [];
after(async () => {
  for (const remove of removals.reverse()) await remove();
  await postgres?.stop();
});

const ranges = (count: number) =>
  Array.from({ length: count }, (_, at) => `${at * 1000 + 300}-${at * 1000 + 305}`).join(',');
const wanted = [
  {
    dst: '198.18.0.5',
    components: { protocol: 'udp', 'source-port': '53,123', 'packet-length': '1000-65535' },
    action: 'discard',
  },
  {
    dst: '198.18.1.0/24',
    components: {
      'source-prefix': '198.51.100.0/22',
      protocol: 'tcp',
      'tcp-flags': 'syn&!ack&!rst,rst&fin,!psh&!urg',
      dscp: '0-10,46',
      fragment: 'is-fragment&!first-fragment,dont-fragment&last-fragment',
    },
    action: 'rate-limit',
    ratelimit: 125_000,
  },
  { dst: '198.18.0.6', components: { port: ranges(16) }, action: 'redirect', redirect_target: '192.0.2.1:666' },
  {
    dst: '198.18.0.7',
    components: { 'icmp-type': '8', 'icmp-code': '0' },
    action: 'redirect',
    redirect_target: '64500:666',
  },
  {
    dst: '2001:db8::/47',
    components: {
      'source-prefix': '2001:db9:1::5',
      protocol: 'ipv6-icmp',
      'icmp-type': '128',
      dscp: '46',
      fragment: 'is-fragment&!first-fragment',
      'flow-label': '5-1000000',
    },
    action: 'mark',
    mark_dscp: 46,
  },
];
const blackholes = ['198.18.0.9', '2001:db8::9'].map((dst) => ({ dst, components: {}, action: 'blackhole' }));

function canonical(routes: readonly object[]): string[] {
  return routes
    .map((route) => {
      const parsed = parseFlowrule(route);
      assert.ok(parsed.ok, JSON.stringify(route));
      return JSON.stringify(parsed.canonical);
    })
    .sort();
}

test('ExaBGP announces through `levee exabgp` what was asked, tells a control plane that comes back, and withdraws', async () => {
  const neighbor = { address: '127.0.0.1', port: await freePort(), asn: 64500 };
  const bird = await startBird({ neighbor });
  removals.push(() => bird.remove());
  const exabgp = startExabgp(bird, neighbor.address);
  removals.push(() => exabgp.remove());
  let speaker = createExabgpSpeaker(exabgp.socketPath);
  removals.push(() => speaker.close());
  const session = async (): Promise<SpeakerSession> => {
    let found: SpeakerSession | undefined;
    await waitUntil(
      async () => {
        const connected = await speaker.connect(() => {});
        if (connected.ok) found = connected.session;
        return connected.ok;
      },
      'the process comes',
      20_000,
    );
    assert.ok(found !== undefined);
    return found;
  };
  const routes: BgpRoute[] = [...wanted, ...blackholes].map((fields) => routeOfFields(fields));
  await holdToContract(speaker);
  const first = await session();
  const long = routeOfFields({ dst: '198.18.0.8', components: { port: ranges(60) }, action: 'discard' });
  const taken = await first.announce([...routes, long]);
  assert.ok(taken.ok, exabgp.output());
  assert.deepEqual([...taken.refused.keys()], [long.key]);
  await waitUntil(async () => (await bird.flowCount()) === wanted.length, 'BIRD has the rules', 20_000);
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(wanted));
  await waitUntil(async () => (await bird.blackholes()).length === 2, 'BIRD has the blackholes');
  for (const { communities, largeCommunities } of await bird.blackholes()) {
    assert.deepEqual(communities, ['65535:666', '65535:65281']);
    assert.deepEqual(largeCommunities, ['4200000000:17:1']);
  }
  // The control plane ends, and another comes: routes stay, and it is told which there are.
  await speaker.close();
  await first.ended;
  speaker = createExabgpSpeaker(exabgp.socketPath);
  const second = await session();
  const listed = await second.list();
  assert.ok(listed.ok);
  assert.deepEqual(
    new Map([...listed.ours].sort()),
    new Map(routes.map(({ key, content }) => [key, content] as const).sort()),
  );
  assert.equal(await bird.flowCount(), wanted.length);
  const gone = await second.withdraw(routes);
  assert.ok(gone.ok);
  await waitUntil(
    async () => (await bird.flowCount()) === 0 && (await bird.blackholes()).length === 0,
    'BIRD has none',
    20_000,
  );
});

test('what was withdrawn while `levee exabgp` was dead goes once it is back, though it remembers nothing; the rest stays all along', async () => {
  const neighbor = { address: '127.0.0.1', port: await freePort(), asn: 64500 };
  const bird = await startBird({ neighbor, address: '127.0.0.4' });
  removals.push(() => bird.remove());
  const exabgp = startExabgp(bird, neighbor.address);
  removals.push(() => exabgp.remove());
  const levee = await openInstallation(postgres);
  removals.push(() => levee.stop());
  const replica = levee.start(createExabgpSpeaker(exabgp.socketPath));
  const uuids = await levee.announce([...wanted, ...blackholes]);
  await waitUntil(async () => (await bird.flowCount()) === wanted.length, 'BIRD has the rules', 20_000);
  await waitUntil(async () => (await bird.blackholes()).length === 2, 'BIRD has the blackholes');
  await waitUntil(levee.areActive, 'all are active');
  await replica.stop();
  const dead = exabgp.relayPid();
  assert.ok(dead !== undefined, exabgp.output());
  process.kill(dead, 'SIGKILL');
  // All but the first rule and the last blackhole.
  await levee.withdraw(uuids.slice(1, -1));
  await waitUntil(() => ![undefined, dead].includes(exabgp.relayPid()), 'ExaBGP runs another', 20_000);
  assert.equal(await bird.flowCount(), wanted.length, 'ExaBGP still announces what the dead one told it');
  const fewest = await fewestDuring(bird, async () => {
    levee.start(createExabgpSpeaker(exabgp.socketPath));
    await waitUntil(async () => (await bird.flowCount()) === 1, 'BIRD has one rule', 20_000);
    await waitUntil(async () => (await bird.blackholes()).length === 1, 'BIRD has one blackhole');
  });
  assert.equal(fewest, 1);
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(wanted.slice(0, 1)));
  await waitUntil(async () => (await levee.rows()).length === 2 && (await levee.areActive()), 'the rows say so');
});
