/** The example configurations of deploy/bgp, with loopback addresses and ports in place of theirs, in the real daemons. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startBird } from '@levee/lab/bgp/bird.ts';
import { freePort } from '@levee/lab/bgp/daemon.ts';
import { startFrr } from '@levee/lab/bgp/frr.ts';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { routeOfFields, testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';

const removals: (() => Promise<void>)[] = [];
after(async () => {
  for (const remove of removals.reverse()) await remove();
});

const mark = { administrator: 4_200_000_000, first: 17_749, second: 1 };
const read = (name: string) => readFileSync(join(import.meta.dirname, '../../deploy/bgp', name), 'utf8');

test('gobgpd, BIRD and FRR work together with the files as they are given out, and take our routes alone', async () => {
  const neighbor = { address: '127.0.0.1', port: await freePort(), asn: 64500 };
  const peer = { address: '127.0.0.2', port: await freePort('127.0.0.2') };
  /** Ours first: a peer's own address is part of none of the others. */
  const placed = (text: string, own: { address: string; port: number }) =>
    text
      .replaceAll('192.0.2.10 port 179', `${neighbor.address} port ${neighbor.port}`)
      .replaceAll(/192\.0\.2\.10\b/g, neighbor.address)
      .replaceAll(/(local|update-source) 192\.0\.2\.[12]\b/g, `$1 ${own.address}`)
      .replaceAll(`${own.address} port 179`, `${own.address} port ${own.port}`);
  const toml = placed(read('gobgpd.toml'), neighbor)
    .replace('port = 179', `port = ${neighbor.port}`)
    .replaceAll('"192.0.2.1"', '"127.0.0.2"');
  // The same block again: FRR is a second peer.
  const second = toml.slice(toml.lastIndexOf('[[neighbors]]')).replaceAll('"127.0.0.2"', '"127.0.0.3"');
  const configuration = `${toml}\n${second}`.replace('router-id = "127.0.0.1"', 'router-id = "192.0.2.10"');
  const gobgpd = await startGobgpd({ ...neighbor, neighbors: [], configuration });
  removals.push(() => gobgpd.remove());
  const bird = await startBird({ neighbor, ...peer, configuration: placed(read('bird.conf'), peer) });
  removals.push(() => bird.remove());
  const frr = await startFrr({
    neighbor,
    configuration: placed(read('frr.conf'), { address: '127.0.0.3', port: 179 }),
  });
  removals.push(() => frr.remove());
  const speaker = createGobgpSpeaker({ target: gobgpd.target, mark });
  removals.push(() => speaker.close());
  let session: Awaited<ReturnType<typeof speaker.connect>> | undefined;
  await waitUntil(async () => {
    session = await speaker.connect(() => {});
    return session.ok;
  }, 'gobgpd answers');
  assert.ok(session?.ok);
  const rules = [
    { dst: '198.18.0.5', components: { protocol: 'udp', 'source-port': '53' }, action: 'discard' },
    { dst: '198.18.0.9', components: {}, action: 'blackhole' },
    { dst: '2001:db8::9', components: {}, action: 'blackhole' },
    { dst: '2001:db8::5', components: { protocol: 'udp' }, action: 'discard' },
  ];
  const ours = rules.map((fields) => routeOfFields(fields, { ...testRoutes, mark }));
  const foreign = routeOfFields({ ...rules[0], dst: '198.18.0.6' }, testRoutes);
  const taken = await session.session.announce([...ours, foreign]);
  assert.ok(taken.ok && taken.refused.size === 0);
  await waitUntil(() => bird.established(), 'the session with BIRD is up', 20_000);
  await waitUntil(() => frr.established(), 'the session with FRR is up', 20_000);
  await waitUntil(async () => (await bird.flowCount()) === 2, 'BIRD has the rules', 20_000);
  await waitUntil(async () => (await bird.blackholes()).length === 2, 'BIRD has the blackholes');
  assert.deepEqual(
    (await bird.flowRoutes()).map(({ dst }) => dst),
    ['198.18.0.5/32', '2001:db8::5/128'],
  );
  assert.match((await bird.ask('show route 198.18.0.9/32')).join('\n'), /blackhole/);
  const shown = async (command: string) => frr.ask(command);
  await waitUntil(
    async () => (await shown('show bgp ipv4 flowspec detail')).includes('198.18.0.5/32'),
    'FRR has the rule',
    20_000,
  );
  const flows = await shown('show bgp ipv4 flowspec detail');
  assert.match(flows, /Source Port = 53/);
  assert.equal(flows.includes('198.18.0.6'), false);
  await waitUntil(
    async () => (await shown('show bgp ipv4 unicast')).includes('198.18.0.9/32'),
    'FRR has the blackhole',
  );
});
