/**
 * Guarantees where a router's kernel has no tunnels, as on machines that the tests mostly run on: the tunnel says which
 * module is lacking, locations without another router are refused with that reason, and rules and filters go on.
 * What a kernel that has them does is the tests' with a kernel of their own.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { labObstacle, Namespace } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe } from './packet-probe.ts';
import { RunningLevee, until } from './running-levee.ts';

const prefix = '203.0.113.0/24';
const guarded = '203.0.113.10';
const open = '203.0.113.20';
const wait = { prefer: 'wait=20' };

test('a kernel that lacks a type of tunnel fails the tunnel with the module’s name, and everything else goes on', {
  skip: labObstacle() ?? tunnelsAreThere() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'tunnel' });
  using probe = new PacketProbe(path);
  const levee = await RunningLevee.start({ environment: { LEVEE_EDGE_NETNS: path.router.name } });
  try {
    const operator = levee.operatorKey;
    const [router] = await levee.good('GET', '/operator/router', operator);
    const addresses = { tunnel_addresses: ['192.0.2.1', '2001:db8:ffff::1'] };
    await levee.good('PATCH', `/operator/router/${router.uuid}`, operator, addresses);
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const create = (more: object) =>
      levee.request('POST', '/tunnel', key, { ips: ['203.0.113.128/28'], endpoint: '198.51.100.9', ...more }, wait);
    const lacking = [
      ['GRE', '198.51.100.9', 'kernel lacks ip_gre'],
      ['GRE', '2001:db8:900::9', 'kernel lacks ip6_gre'],
      ['Geneve', '198.51.100.9', 'kernel lacks geneve'],
    ];
    for (const [type, endpoint, reason] of lacking) {
      const { headers, body: made } = await create({ type, endpoint });
      assert.equal(headers.get('preference-applied'), 'wait=20, outcome=failed', JSON.stringify(made));
      const { state_reason, tunnel_information } = made;
      assert.equal(state_reason, `local: ${reason}`);
      assert.deepEqual([tunnel_information[0].state, tunnel_information[0].state_reason], ['failed', reason]);
      assert.equal(tunnel_information[0].probe, undefined);

      const refused = await create({ ips: ['203.0.113.192/28'], type, endpoint, locations: ['local'] });
      assert.deepEqual([refused.status, refused.body.error], [409, 'conflict']);
      assert.match(
        refused.body.message,
        /^locations\.0: no router at local can end .* local has reported that it cannot/,
      );

      const filter = await levee.request('POST', '/filter', key, { dst: open, filter: 22 }, wait);
      assert.equal(filter.headers.get('preference-applied'), 'wait=20, outcome=applied', 'a filter beside it');
      const rule = await levee.good(
        'POST',
        '/firewall/rule',
        key,
        { dst: guarded, protocol: 'udp', action: 'drop' },
        wait,
      );
      assert.equal(rule.state, 'active', JSON.stringify(rule));
      assert.ok(!(await probe.passes(guarded, open)), 'rules are enforced beside it');
      await levee.good('DELETE', `/firewall/rule/${rule.uuid}`, key, undefined, wait);
      assert.ok(await probe.passes(guarded, open));

      const deleted = await levee.request('DELETE', `/tunnel/${made.uuid}`, key, undefined, wait);
      assert.equal(deleted.headers.get('preference-applied'), 'wait=20, outcome=applied');
      await until('the tunnel to be gone', 20_000, async () => {
        return (await levee.request('GET', `/tunnel/${made.uuid}`, key)).status === 404;
      });
    }
    await until('the router to tell of its tunnels', 20_000, async () => {
      const [{ status }] = await levee.good('GET', '/operator/router', operator);
      return typeof status?.tunnels === 'object';
    });
  } finally {
    await levee.stop();
  }
});

/** One sentence where this kernel makes a GRE or a Geneve device, so that there is nothing to fail; else undefined. */
function tunnelsAreThere(): string | undefined {
  using namespace = new Namespace('tunnel-try');
  const made = ['type gre local 192.0.2.1 remote 192.0.2.2', 'type geneve id 1 remote 192.0.2.2'].filter((form) => {
    const args = ['-n', namespace.name, 'link', 'add', 'try0', ...form.split(' ')];
    return spawnSync('ip', args, { stdio: 'ignore' }).status === 0;
  });
  return made.length === 0 ? undefined : 'this kernel has tunnels: none fails for want of them';
}
