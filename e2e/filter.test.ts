/**
 * Guarantees for a filter on a whole Levee with its own edge: the state says truthfully that this edge does not enforce
 * the kind, traffic is as before, and a deleted filter goes as soon as the edge has heard of it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe } from './packet-probe.ts';
import { RunningLevee, until } from './running-levee.ts';

const prefix = '203.0.113.0/24';
const guarded = '203.0.113.10';
const open = '203.0.113.20';

test('a filter that the edge cannot enforce says so, touches nothing, and goes when it is deleted', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'filter' });
  using probe = new PacketProbe(path);
  const levee = await RunningLevee.start({ environment: { LEVEE_EDGE_NETNS: path.router.name } });
  try {
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const catalogue = await levee.good('GET', '/filter/kind', key);
    const dns = catalogue.find((kind: { name: string }) => kind.name === 'dns');
    const wait = { prefer: 'wait=20' };
    const made = await levee.request('POST', '/filter', key, { dst: guarded, filter: dns.id }, wait);
    assert.equal(made.headers.get('preference-applied'), 'wait=20, outcome=not-enforced');
    const stateNow = async () => {
      const [filter] = await levee.good('GET', `/filter/${made.body.uuid}`, key);
      return filter;
    };
    await until('the edge to have heard of it', 20_000, async () =>
      /not enforce/.test((await stateNow()).state_reason),
    );
    const { state, state_reason } = await stateNow();
    assert.equal(state, 'pending');
    assert.match(state_reason, /its agent does not enforce filters of kind dns \(22\)$/);
    assert.ok(await probe.passes(guarded, open), 'traffic that the filter is for passes as before');

    const rule = { dst: guarded, protocol: 'udp', action: 'drop' };
    await levee.good('POST', '/firewall/rule', key, rule, wait);
    assert.ok(!(await probe.passes(guarded, open)), 'rules are enforced beside it');

    const deleted = await levee.request('DELETE', `/filter/${made.body.uuid}`, key, undefined, wait);
    assert.equal(deleted.headers.get('preference-applied'), 'wait=20, outcome=applied');
    await until('the filter to be gone', 20_000, async () => {
      return (await levee.request('GET', `/filter/${made.body.uuid}`, key)).status === 404;
    });
    assert.deepEqual(await levee.good('GET', '/provider/filter', key), []);
  } finally {
    await levee.stop();
  }
});
