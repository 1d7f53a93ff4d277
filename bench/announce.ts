/**
 * From a flowrule's commit to its route at a BGP peer, and to 10 000 of them, beside what gobgpd does alone: the program `gobgp`
 * for one route, its gRPC interface for one and for all. One gobgpd, one BIRD that looks at nothing else. Needs the tests' Debian packages.
 *
 * npm run bench -- announce [changes a turn = 50] [routes = 10000]
 */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startBird } from '@levee/lab/bgp/bird.ts';
import { startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { openInstallation } from '../e2e/bgp/installation.ts';
import type { Fields } from '../e2e/bgp/wanted-routes.ts';
import { createGobgpSpeaker } from '../packages/server/src/backends/bgp/gobgp/gobgp-speaker.ts';
import { routeOfFields, seedFlowrule, testRoutes } from '../packages/server/src/backends/bgp/testing/flowrules.ts';
import { startTestPostgres } from '../packages/server/src/store/testing/test-postgres.ts';
import { waitUntil } from '../packages/server/src/store/testing/wait-until.ts';

const changes = Number(process.argv[2] ?? 50);
const many = Number(process.argv[3] ?? 10_000);
const run = promisify(execFile);

const ends: (() => unknown)[] = [];
try {
  const postgres = await startTestPostgres();
  ends.push(() => postgres.stop());
  const levee = await openInstallation(postgres);
  ends.push(() => levee.stop());
  const gobgpd = await startGobgpd({ neighbors: [{ address: '127.0.0.2', asn: 64500 }] });
  ends.push(() => gobgpd.remove());
  const bird = await startBird({ neighbor: gobgpd });
  ends.push(() => bird.remove());
  await waitUntil(() => bird.established(), 'the session is up', 20_000);

  /** Polled without a pause: BIRD answers in some tenths of a millisecond. */
  const untilPeerHas = async (count: number) => {
    const deadline = Date.now() + 120_000;
    while ((await bird.flowCount()) !== count) {
      if (Date.now() > deadline) throw new Error(`the peer does not come to ${count} routes`);
    }
  };
  const fieldsOf = (number: number): Fields => ({
    dst: `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`,
    components: { protocol: 'udp', 'source-port': '53' },
    action: 'discard',
  });
  const all = Array.from({ length: many }, (_, number) => fieldsOf(number));
  /** Beside `all`. */
  const another = (turn: number) => fieldsOf(65_536 + turn);

  /** Milliseconds of each change; each is taken back again. */
  async function oneByOne(
    present: number,
    announce: (turn: number) => Promise<() => Promise<unknown>>,
  ): Promise<number[]> {
    const took: number[] = [];
    for (let turn = 0; turn < changes; turn++) {
      const begun = performance.now();
      let takeBack: () => Promise<unknown> = async () => {};
      const announcing = announce(turn).then((back) => {
        takeBack = back;
      });
      await untilPeerHas(present + 1);
      took.push(performance.now() - begun);
      await announcing;
      await takeBack();
      await untilPeerHas(present);
      await delay(20);
    }
    return took;
  }

  const alone = createGobgpSpeaker({ target: gobgpd.target, mark: { ...testRoutes.mark, second: 999 } });
  const connected = await alone.connect(() => {});
  if (!connected.ok) throw new Error(connected.reason);
  const { session } = connected;
  const byGrpc = async (turn: number) => {
    const route = routeOfFields(another(turn));
    await session.announce([route]);
    return () => session.withdraw([route]);
  };
  const byProgram = async (turn: number) => {
    const rib = ['--target', gobgpd.target, 'global', 'rib'];
    const match = ['match', 'destination', `${another(turn).dst}/32`, 'protocol', '==udp', 'source-port', '==53'];
    await run('gobgp', [...rib, 'add', '-a', 'ipv4-flowspec', ...match, 'then', 'discard']);
    return () => run('gobgp', [...rib, 'del', '-a', 'ipv4-flowspec', ...match]);
  };
  const byLevee = async (turn: number) => {
    const uuids = await levee.announce([another(turn)]);
    return () => levee.withdraw(uuids);
  };

  const figures: Record<string, object> = {};
  const quantile = (of: readonly number[], part: number) =>
    Number(([...of].sort((a, b) => a - b)[Math.floor((of.length - 1) * part)] ?? 0).toFixed(1));
  const note = (what: string, took: readonly number[]) => {
    figures[what] = { 'median ms': quantile(took, 0.5), '95 % ms': quantile(took, 0.95), 'most ms': quantile(took, 1) };
    return quantile(took, 0.5);
  };

  // Without a reconciler: what gobgpd and the session to the peer take by themselves.
  const program = note('gobgp, nothing else there', await oneByOne(0, byProgram));
  const grpc = note('gRPC, nothing else there', await oneByOne(0, byGrpc));
  const routes = all.map((fields) => routeOfFields(fields));
  const begunAlone = performance.now();
  const sent = session.announce(routes);
  await untilPeerHas(many);
  const allAlone = performance.now() - begunAlone;
  await sent;
  const programMany = note(`gobgp, ${many} there`, await oneByOne(many, byProgram));
  await session.withdraw(routes);
  await untilPeerHas(0);
  await alone.close();

  levee.start(createGobgpSpeaker({ target: gobgpd.target, mark: testRoutes.mark }));
  const first = await levee.announce([another(0)]);
  await waitUntil(levee.areActive, 'Levee is there');
  await levee.withdraw(first);
  await untilPeerHas(0);
  const ours = note('Levee, nothing else there', await oneByOne(0, byLevee));
  const client = await levee.database.pool.connect();
  await client.query('begin');
  for (const fields of all) await seedFlowrule(client, levee.provider, { fields });
  await client.query('commit');
  client.release();
  const begunOurs = performance.now();
  levee.tail.wake();
  await untilPeerHas(many);
  const allOurs = performance.now() - begunOurs;
  await waitUntil(levee.areActive, 'all are noted', 60_000);
  const oursMany = note(`Levee, ${many} there`, await oneByOne(many, byLevee));

  console.log('one route, from its commit (or from the call) until the peer has it:');
  console.table(figures);
  const ratio = (a: number, b: number) => (a / b).toFixed(2);
  console.log(
    `one route: ${ratio(ours, program)} times what gobgp takes, ${ratio(ours, grpc)} times gRPC alone; ` +
      `beside ${many}: ${ratio(oursMany, programMany)} times what gobgp takes`,
  );
  console.log(
    `${many} routes of one commit at the peer after ${Math.round(allOurs)} ms; gRPC alone ${Math.round(allAlone)} ms: ` +
      `ratio ${ratio(allOurs, allAlone)}`,
  );
} finally {
  for (const end of ends.reverse()) await end();
}
