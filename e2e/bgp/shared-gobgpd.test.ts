/** A gobgpd that is not Levee's alone: an engineer's routes by the program `gobgp`, and a second installation's. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { type Gobgpd, startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { type Installation, openInstallation } from './installation.ts';

let postgres: TestPostgres;
const ends: (() => Promise<unknown>)[] = [];
before(async () => {
  postgres = await startTestPostgres();
});
after(async () => {
  for (const end of ends.reverse()) await end();
  await postgres?.stop();
});

const speakerAt = ({ target }: Gobgpd, mark = testRoutes.mark) => createGobgpSpeaker({ target, mark });
const run = ({ target }: Gobgpd, ...args: readonly string[]) =>
  execFileSync('gobgp', ['--target', target, 'global', 'rib', ...args], { encoding: 'utf8' });
/** One line a route, without its age. */
const flows = (gobgpd: Gobgpd) =>
  run(gobgpd, '-a', 'ipv4-flowspec')
    .split('\n')
    .filter((line) => line.includes('destination'))
    .map((line) => line.replace(/ \d\d:\d\d:\d\d /, ' ').trim())
    .sort();
async function open(): Promise<{ gobgpd: Gobgpd; levee: Installation }> {
  const gobgpd = await startGobgpd({ neighbors: [] });
  ends.push(() => gobgpd.remove());
  const levee = await openInstallation(postgres);
  ends.push(() => levee.stop());
  return { gobgpd, levee };
}

const udp = (dst: string) => ({ dst, components: { protocol: 'udp' }, action: 'discard' });
const byHand = (dst: string) => ['-a', 'ipv4-flowspec', 'match', 'destination', `${dst}/32`, 'protocol', '==udp'];
const limited = ['then', 'rate-limit', '1000'];
const failures = async (levee: Installation) =>
  (await levee.rows()).filter(({ deleted }) => !deleted).map(({ failure }) => failure?.split(' ', 2).join(' '));

test('a route that an engineer put in place of ours stays theirs through comparison, change and withdrawal; then ours comes back', async () => {
  const { gobgpd, levee } = await open();
  levee.start(speakerAt(gobgpd));
  const [first = ''] = await levee.announce([udp('198.18.0.7')]);
  await levee.announce([udp('198.18.0.8'), { dst: '198.18.0.9', components: {}, action: 'blackhole' }]);
  await waitUntil(levee.areActive, 'all are active');
  for (const dst of ['198.18.0.7', '198.18.0.8']) run(gobgpd, 'add', ...byHand(dst), ...limited);
  run(gobgpd, 'add', '-a', 'ipv4', '198.18.0.9/32', 'nexthop', '192.0.2.9');
  // And one that Levee has never announced.
  run(gobgpd, 'add', ...byHand('198.18.0.10'), ...limited);
  const theirs = flows(gobgpd);
  const unicast = () => run(gobgpd, '-a', 'ipv4').match(/198\.18\.0\.9\/32 +192\.0\.2\.9/)?.length;
  assert.equal(theirs.filter((line) => line.includes('rate: 1000')).length, 3);
  // A change of each is looked at at once: one goes, one comes.
  await levee.withdraw([first]);
  await levee.announce([udp('198.18.0.10')]);
  await waitUntil(async () => (await failures(levee)).includes('Another program'), 'the new one is refused');
  await waitUntil(async () => (await levee.rows()).every(({ uuid }) => uuid !== first), 'the withdrawn one is gone');
  assert.deepEqual(flows(gobgpd), theirs);
  // It makes comparisons come soon, which find the others.
  await waitUntil(async () => (await failures(levee)).every((each) => each === 'Another program'), 'all are refused');
  assert.deepEqual(flows(gobgpd), theirs);
  assert.equal(unicast(), 1);
  for (const dst of ['198.18.0.8', '198.18.0.10']) run(gobgpd, 'del', ...byHand(dst));
  run(gobgpd, 'del', '-a', 'ipv4', '198.18.0.9/32');
  await waitUntil(levee.areActive, 'ours are announced again');
  const now = flows(gobgpd);
  assert.equal(now.length, 3);
  assert.ok(now[0]?.includes('198.18.0.10') && now[0].includes('discard'), now.join('\n'));
  assert.ok(now[1]?.includes('198.18.0.7') && now[1].includes('rate: 1000'), now.join('\n'));
  assert.ok(now[2]?.includes('198.18.0.8') && now[2].includes('discard'), now.join('\n'));
});

test('two installations with marks of their own on one gobgpd leave each other alone, and the later of one route waits', async () => {
  const { gobgpd, levee } = await open();
  const other = await openInstallation(postgres);
  ends.push(() => other.stop());
  const otherMark = { ...testRoutes.mark, second: 2 };
  levee.start(speakerAt(gobgpd));
  let replica = other.start(speakerAt(gobgpd, otherMark), otherMark);
  const shared = udp('198.18.0.30');
  const [held = ''] = await levee.announce([shared, udp('198.18.0.31')]);
  await other.announce([udp('198.18.0.32')]);
  await waitUntil(async () => (await levee.areActive()) && (await other.areActive()), 'both are active');
  await other.announce([shared]);
  await waitUntil(async () => (await failures(other)).includes('Another program'), 'the later one is refused');
  const before = flows(gobgpd);
  assert.equal(before.length, 3);
  // A whole comparison of each, as after any start.
  await replica.stop();
  replica = other.start(speakerAt(gobgpd, otherMark), otherMark);
  const [marker = ''] = await other.announce([udp('198.18.0.33')]);
  await waitUntil(() => flows(gobgpd).length === 4, 'it has compared');
  await other.withdraw([marker]);
  await waitUntil(() => flows(gobgpd).length === 3, 'the marker is gone');
  assert.deepEqual(flows(gobgpd), before);
  await levee.withdraw([held]);
  await waitUntil(other.areActive, 'the other has the route now');
  assert.equal(flows(gobgpd).length, 3);
});
