/**
 * Guarantees for a filter on a whole Levee with its own edge: it is active when the kernel has it, real packets go as its
 * kind says and as `explain` tells, what it discards is counted, a rule goes before it, and it goes when it is deleted.
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
const wait = { prefer: 'wait=20' };

/** DNS messages without their id: a question for the root's name servers, and an answer that nobody asked for. */
const question = Uint8Array.of(0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);
const answer = Uint8Array.of(0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);

test('a filter is enforced by packets, counted, explained, outranked by a rule, and gone when it is deleted', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'filter' });
  using questions = new PacketProbe(path, { port: 53, sourcePort: 40_001, payload: question });
  using answers = new PacketProbe(path, { port: 53, sourcePort: 40_002, payload: answer });
  using others = new PacketProbe(path, { port: 9, sourcePort: 40_003 });
  const levee = await RunningLevee.start({ environment: { LEVEE_EDGE_NETNS: path.router.name } });
  const passing = async () => Promise.all([questions, answers, others].map((probe) => probe.passes(guarded, open)));
  try {
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const catalogue = await levee.good('GET', '/filter/kind', key);
    const dns = catalogue.find((kind: { name: string }) => kind.name === 'dns');
    assert.deepEqual(await passing(), [true, true, true]);

    const made = await levee.request('POST', '/filter', key, { dst: guarded, filter: dns.id }, wait);
    assert.equal(made.headers.get('preference-applied'), 'wait=20, outcome=applied', JSON.stringify(made.body));
    assert.equal(made.body.state, 'active');
    assert.equal(typeof made.body.applied[0].latency_ms, 'number');
    assert.deepEqual(await passing(), [true, false, true]);
    for (let round = 0; round < 4; round++) assert.equal(await answers.passes(guarded, open), false);

    const { uuid } = made.body;
    const explain = async (payload: Uint8Array) => {
      const packet = { dst: guarded, src: '198.51.100.7', protocol: 'udp', port: { src: 40_001, dst: 53 } };
      const message = Buffer.from([0, 1, ...payload]).toString('base64');
      const told = await levee.good('POST', '/firewall/explain', key, { ...packet, payload: message });
      return [told.verdict, told.decided_by, told.trail[0].uuid];
    };
    assert.deepEqual(await explain(question), ['accept', 'default', uuid]);
    assert.deepEqual(await explain(answer), ['drop', uuid, uuid]);

    const read = async () => (await levee.good('GET', `/filter/${uuid}`, key))[0];
    await until('the edge to have told what it discarded', 30_000, async () => (await read()).hits.packets > 0);
    const { hits } = await read();
    assert.equal(hits.packets, 5, 'the answers alone');
    assert.ok(Date.now() - Date.parse(hits.last_hit_at) < 60_000);

    const rule = { dst: guarded, protocol: 'udp', action: 'accept', port: { src: { start: 40_002 } } };
    const accepted = await levee.good('POST', '/firewall/rule', key, rule, wait);
    assert.deepEqual(await passing(), [true, true, true], 'what a rule accepts no filter is asked about');
    await levee.good('DELETE', `/firewall/rule/${accepted.uuid}`, key, undefined, wait);
    assert.deepEqual(await passing(), [true, false, true]);

    const deleted = await levee.request('DELETE', `/filter/${uuid}`, key, undefined, wait);
    assert.equal(deleted.headers.get('preference-applied'), 'wait=20, outcome=applied');
    assert.deepEqual(await passing(), [true, true, true]);
    await until('the filter to be gone', 20_000, async () => {
      return (await levee.request('GET', `/filter/${uuid}`, key)).status === 404;
    });
    assert.deepEqual(await levee.good('GET', '/provider/filter', key), []);
  } finally {
    await levee.stop();
  }
});
