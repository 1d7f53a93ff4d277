import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { filterChain, filterSet } from '@levee/core/nftables/names.ts';
import { pino } from 'pino';
import { openNetlink } from './drivers/nft/netlink.ts';
import { startEdge } from './main.ts';
import { startControlPlane, type TestControlPlane } from './testing/control-plane.ts';
import { ownDirectory } from './testing/directory.ts';
import { filterOf } from './testing/filters.ts';
import { openForwardPath } from './testing/forward-path.ts';
import { enterOwnNamespace, nft } from './testing/own-namespace.ts';
import { ruleOf, uuidOf } from './testing/rules.ts';
import { until } from './testing/until.ts';

const skip = enterOwnNamespace() ?? false;
const [blocked, open] = [5001, 5002];

async function setUp(t: TestContext) {
  const directory = ownDirectory(t);
  const controlPlane = await startControlPlane({ socketPath: join(directory, 'control.sock') });
  t.after(() => controlPlane.close());
  nft('flush ruleset\n');
  const path = await openForwardPath(['10.0.0.1', '10.0.0.2'], [blocked, open]);
  t.after(() => path.close());
  const start = async () => {
    const edge = await startEdge({
      controlPlanes: [controlPlane.address],
      key: controlPlane.key,
      stateDirectory: join(directory, 'state'),
      driver: 'kernel',
      intervals: { reportMilliseconds: 100, driftMilliseconds: 50 },
      logger: pino({ level: 'silent' }),
    });
    t.after(() => edge.stop());
    await until('all is acknowledged', () => controlPlane.acknowledged === controlPlane.position);
    return edge;
  };
  return { controlPlane, path, start };
}

const packetsOf = (controlPlane: TestControlPlane, n: number): number => controlPlane.hits.get(uuidOf(n))?.packets ?? 0;
/** RFC 1035: A of example.com. */
const question = '4d3101000001000000000000076578616d706c6503636f6d0000010001';
const generation = (): number => {
  const kernel = openNetlink('levee');
  try {
    return kernel.generation();
  } finally {
    kernel.close();
  }
};
const dropping = { port: { dst: { start: blocked } } };

describe('packets on their way through a router with an edge', { skip }, () => {
  test('every dropped packet is counted once, over changes of the rule, full loads and a restart', async (t) => {
    const { controlPlane, path, start } = await setUp(t);
    controlPlane.upsert(
      ruleOf(1, dropping),
      ruleOf(2, dropping),
      ruleOf(3, { dst: '10.0.0.0/24', ...dropping, action: 'continue', priority: 1 }),
      // So many that chains are read one by one.
      ...Array.from({ length: 200 }, (_, n) => ruleOf(100 + n, { port: { dst: { start: 7000 + n } } })),
    );
    const edge = await start();
    await path.send('10.0.0.1', blocked, 20, 0);
    await until('20 are reported', () => packetsOf(controlPlane, 1) === 20);
    assert.deepEqual(
      [controlPlane.hits.get(uuidOf(1))?.bytes, controlPlane.hits.get(uuidOf(1))?.shared_by],
      [2000, undefined],
    );
    assert.equal(packetsOf(controlPlane, 3), 20);
    assert.equal(packetsOf(controlPlane, 2), 0);

    // Counted, not yet reported, when the chain is flushed by a change, and when everything is loaded anew.
    await path.send('10.0.0.1', blocked, 5, 0);
    controlPlane.upsert(ruleOf(4, { dst: '10.0.0.1', protocol: 'tcp' }));
    await until('25 are reported', () => packetsOf(controlPlane, 1) === 25);
    await path.send('10.0.0.1', blocked, 5, 0);
    nft('add chain inet levee foreign\n');
    await until('it was loaded anew', () => edge.statistics.fullLoads === 2);
    await until('30 are reported', () => packetsOf(controlPlane, 1) === 30);

    await edge.stop();
    const second = await start();
    assert.equal(second.statistics.adoptions, 1);
    await path.send('10.0.0.1', blocked, 7, 0);
    await until('37 are reported', () => packetsOf(controlPlane, 1) === 37);
    const statuses = (): number => controlPlane.reports.filter(({ status }) => status).length;
    const seen = statuses();
    await until('three periods later', () => statuses() > seen + 3);
    assert.equal(packetsOf(controlPlane, 1), 37);
    assert.deepEqual(path.received(), { [blocked]: 0, [open]: 0 });
  });

  test('rules of destinations that share a chain say so', async (t) => {
    const { controlPlane, path, start } = await setUp(t);
    controlPlane.upsert(...Array.from({ length: 20 }, (_, n) => ruleOf(n, dropping)));
    await start();
    await path.send('10.0.0.1', blocked, 10, 0);
    await path.send('10.0.0.2', blocked, 10, 0);
    await until('20 are reported', () => packetsOf(controlPlane, 1) === 20);
    assert.equal(controlPlane.hits.get(uuidOf(1))?.shared_by, 20);
  });

  test('adoption, repeated full loads and changes under traffic: nothing forbidden passes, nothing allowed is lost', async (t) => {
    const { controlPlane, path, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1, dropping), ...Array.from({ length: 2000 }, (_, n) => ruleOf(n + 10)));
    const first = await start();
    await first.stop();
    const count = 4000;
    const sending = Promise.all([
      path.send('10.0.0.1', blocked, count, 2000),
      path.send('10.0.0.1', open, count, 2000),
    ]);
    let over = false;
    const sent = sending.then(() => {
      over = true;
    });
    const edge = await start();
    assert.equal(edge.statistics.adoptions, 1);
    for (let n = 0; n < 100 && !over; n++) {
      controlPlane.upsert(ruleOf(5000 + n, { dst: '10.0.0.1', port: { dst: { start: 6000 + n } } }));
      if (n % 5 === 0) nft('add chain inet levee foreign\n');
      await until('the change is acknowledged', () => controlPlane.acknowledged === controlPlane.position);
    }
    await sent;
    await until('all that is allowed has arrived', () => path.received()[open] === count);
    assert.equal(path.received()[blocked], 0);
    assert.ok(edge.statistics.fullLoads >= 2, `${edge.statistics.fullLoads} full loads`);
  });

  test('a filter discards what it does not know, counts that as its hits, keeps its memory over a restart, and goes', async (t) => {
    const { controlPlane, path, start } = await setUp(t);
    const uuid = uuidOf(1);
    const filter = filterOf(1, { port: { dst: { start: blocked } } });
    controlPlane.upsert(filter);
    const edge = await start();
    await path.send('10.0.0.1', blocked, 10, 0, question);
    await path.send('10.0.0.1', blocked, 20, 0);
    await path.send('10.0.0.1', open, 5, 0);
    await path.send('10.0.0.2', blocked, 5, 0);
    await until('what may pass has arrived', () => path.received()[blocked] === 15 && path.received()[open] === 5);
    await until('what was discarded is reported', () => packetsOf(controlPlane, 1) === 20);
    assert.deepEqual(controlPlane.hits.get(uuid)?.bytes, 2000);
    assert.ok(controlPlane.reports.at(-1)?.capabilities?.includes('filter:22'));

    const metered = (): string => nft(`list set inet levee ${filterSet('meter_source', uuid)}\n`);
    assert.match(metered(), /10\.9\.0\.2 \. 10\.0\.0\.1/);
    await edge.stop();
    const before = generation();
    const second = await start();
    await until('connected', () => second.connected);
    assert.equal(second.statistics.adoptions, 1);
    assert.equal(generation(), before);
    assert.match(metered(), /10\.9\.0\.2 \. 10\.0\.0\.1/);
    await path.send('10.0.0.1', blocked, 7, 0);
    await until('what the second run discarded is reported', () => packetsOf(controlPlane, 1) === 27);

    // Another filter and a rule beside it: one transaction, and the first one's memory stays.
    controlPlane.upsert(filterOf(2), ruleOf(3, { dst: '10.0.0.1', port: { dst: { start: 9 } } }));
    await until('the change is in force', () => controlPlane.acknowledged === controlPlane.position);
    assert.match(metered(), /10\.9\.0\.2 \. 10\.0\.0\.1/);
    controlPlane.remove(uuid);
    await until('its end is acknowledged', () => controlPlane.acknowledged === controlPlane.position);
    assert.throws(() => nft(`list chain inet levee ${filterChain('discard', uuid)}\n`));
    const seen = path.received()[blocked] ?? 0;
    await path.send('10.0.0.1', blocked, 5, 0);
    await until('it is not filtered any more', () => path.received()[blocked] === seen + 5);
    assert.equal(second.statistics.fullLoads, 0);
  });

  test('what packets write into the sets of filters, and what times out there, is no drift', async (t) => {
    const { controlPlane, path, start } = await setUp(t);
    const settling = filterOf(1, { filter: 25, port: { dst: { start: open } } });
    controlPlane.upsert(settling, filterOf(2, { port: { dst: { start: blocked } } }));
    const edge = await start();
    const elements = (set: string): string =>
      /elements = \{(.*)\}/s.exec(nft(`list set inet levee ${set}\n`))?.[1] ?? '';
    assert.notEqual(elements(filterSet('settling', settling.uuid)), '');
    const meter = filterSet('meter_source', uuidOf(2));
    await path.send('10.0.0.2', blocked, 50, 500, question);
    assert.notEqual(elements(meter), '');
    await until(
      'the filter has settled under traffic, and what was metered has timed out',
      async () => {
        await path.send('10.0.0.1', open, 50, 500);
        return elements(filterSet('settling', settling.uuid)) === '' && elements(meter) === '';
      },
      20_000,
    );
    const statuses = controlPlane.reports.filter(({ status }) => status).length;
    const looks = (): number => controlPlane.reports.filter(({ status }) => status).length - statuses;
    await until('some looks later', () => looks() > 3);
    assert.equal(controlPlane.reports.findLast(({ status }) => status)?.status?.drift, 0);
    assert.equal(edge.statistics.fullLoads, 1);
  });
});
