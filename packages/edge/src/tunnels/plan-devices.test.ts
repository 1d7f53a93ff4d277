import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import fc from 'fast-check';
import { createFakeLinks, type FakeLinks } from '../drivers/link/fake.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { deviceGroup, deviceName } from './device-name.ts';
import { routeProtocol } from './ip-lines.ts';
import { type DevicePlan, planDevices } from './plan-devices.ts';
import { readTunnel, type WantedDevice } from './wanted-device.ts';

function wantedOf(...tunnels: readonly AgentTunnel[]): Map<string, WantedDevice> {
  return new Map(
    tunnels.map((tunnel) => {
      const read = readTunnel(tunnel);
      assert.ok(read.ok, read.ok ? '' : read.reason);
      return [tunnel.uuid, read.device];
    }),
  );
}

const linesOf = ({ first, then }: DevicePlan) => [...first, ...then].map(({ line }) => line);
const plan = (links: FakeLinks, ...tunnels: AgentTunnel[]) => planDevices(wantedOf(...tunnels), links.links());

/** What the plan fails at. */
async function carryOut(links: FakeLinks, { first, then, dying }: DevicePlan): Promise<string[]> {
  const said: string[] = [];
  for (const steps of [first, then]) {
    const results = await links.run(steps.map(({ line }) => line));
    results.forEach((result, index) => {
      if (result !== undefined) said.push(`${steps[index]?.line}: ${result}`);
    });
  }
  await links.run(dying.map((name) => `link delete dev ${name}`));
  return said;
}

async function withTunnels(...tunnels: AgentTunnel[]): Promise<FakeLinks> {
  const links = createFakeLinks(routeProtocol);
  assert.deepEqual(await carryOut(links, plan(links, ...tunnels)), []);
  assert.deepEqual(linesOf(plan(links, ...tunnels)), []);
  return links;
}

const nameOf = (tunnel: AgentTunnel) => deviceName(tunnel.uuid, 0);

test('a tunnel becomes a device of its kind, with its own MTU, the router’s addresses, and routes by way of the customer', () => {
  const lines = (fields: Partial<AgentTunnel>) => {
    const tunnel = tunnelOf(5, fields);
    return linesOf(plan(createFakeLinks(routeProtocol), tunnel)).map((line) => line.replaceAll(nameOf(tunnel), 'X'));
  };
  const uuid = tunnelOf(5).uuid;
  assert.deepEqual(lines({ ips: ['192.0.2.7', '2001:db8:1::/48'] }), [
    'link add name X mtu 1472 group 27766 type gre local 203.0.113.1 remote 198.51.100.6 ttl 64 key 5',
    `link set dev X alias ${uuid} addrgenmode none`,
    'address add 10.255.5.0/31 dev X',
    'address add fd00:0:0:5::/127 dev X nodad',
    'link set dev X up',
    'route add 192.0.2.7/32 via 10.255.5.1 dev X proto 108 metric 10',
    'route add 2001:db8:1::/48 via fd00:0:0:5::1 dev X proto 108 metric 10',
  ]);
  const v6 = { endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' };
  assert.equal(
    lines({ ...v6 })[0],
    'link add name X mtu 1448 group 27766 type ip6gre local 2001:db8::1 remote 2001:db8::9 hoplimit 64 encaplimit none key 5',
  );
  assert.match(lines({ keyed: false })[0] ?? '', /ttl 64$/);
  assert.deepEqual(lines({ type: 'Geneve' }).slice(0, 2), [
    'link add name X mtu 1450 group 27766 type geneve id 5 remote 198.51.100.6 ttl 64 dstport 6081',
    `link set dev X alias ${uuid}`,
  ]);
  assert.match(lines({ type: 'Geneve', ...v6 })[0] ?? '', /mtu 1430 .*remote 2001:db8::9/);
});

test('another endpoint, MTU, address, route or a device that is down takes a command each, and no new device', async () => {
  const tunnel = tunnelOf(1);
  const name = nameOf(tunnel);
  const links = await withTunnels(tunnel);
  assert.deepEqual(linesOf(plan(links, { ...tunnel, endpoint: '198.51.100.99' })), [
    `link change dev ${name} mtu 1472 type gre local 203.0.113.1 remote 198.51.100.99 ttl 64 key 1`,
  ]);
  const geneve = tunnelOf(2, { type: 'Geneve' });
  assert.deepEqual(linesOf(plan(await withTunnels(geneve), { ...geneve, endpoint: '198.51.100.99' })), [
    `link change dev ${nameOf(geneve)} mtu 1450 type geneve id 2 remote 198.51.100.99 ttl 64`,
  ]);
  assert.deepEqual(linesOf(plan(links, { ...tunnel, ips: ['10.200.2.0/24'] })), [
    `route del 10.200.1.0/24 via 10.255.1.1 dev ${name} proto 108 metric 10`,
    `route add 10.200.2.0/24 via 10.255.1.1 dev ${name} proto 108 metric 10`,
  ]);
  links.foreign(
    `link set dev ${name} mtu 1400`,
    `address del 10.255.1.0/31 dev ${name}`,
    `address add 10.9.9.9/24 dev ${name}`,
  );
  assert.deepEqual(linesOf(plan(links, tunnel)), [
    `link set dev ${name} mtu 1472`,
    `address add 10.255.1.0/31 dev ${name}`,
    `address del 10.9.9.9/24 dev ${name}`,
  ]);
  links.foreign(
    `link set dev ${name} mtu 1472`,
    `address add 10.255.1.0/31 dev ${name}`,
    `address del 10.9.9.9/24 dev ${name}`,
  );
  links.foreign(
    `route del 10.200.1.0/24 via 10.255.1.1 dev ${name} proto 108 metric 10`,
    `route add 10.200.1.0/24 via 10.255.1.1 dev ${name} proto 108 metric 7`,
  );
  assert.deepEqual(linesOf(plan(links, tunnel)), [
    `route del 10.200.1.0/24 via 10.255.1.1 dev ${name} proto 108 metric 7`,
    `route add 10.200.1.0/24 via 10.255.1.1 dev ${name} proto 108 metric 10`,
  ]);
  links.foreign(`link set dev ${name} down`);
  assert.deepEqual(await carryOut(links, plan(links, tunnel)), []);
  assert.deepEqual(linesOf(plan(links, tunnel)), []);
});

test('what no change can do replaces that one device', async () => {
  const [tunnel, other] = [tunnelOf(1), tunnelOf(2)];
  const links = await withTunnels(tunnel, other);
  for (const changed of [
    { ...tunnel, number: 77 },
    { ...tunnel, endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' },
  ]) {
    const lines = linesOf(plan(links, changed, other));
    assert.equal(lines[0], `link delete dev ${nameOf(tunnel)}`);
    assert.match(lines[1] ?? '', /^link add name /);
    assert.ok(lines.every((line) => line.includes(nameOf(tunnel))));
  }
});

test('all that is set on a device is mended when somebody sets it otherwise', async () => {
  const gre = tunnelOf(1);
  const ipv6 = tunnelOf(2, { endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' });
  const geneve = tunnelOf(3, { type: 'Geneve' });
  const all = [gre, ipv6, geneve];
  const [a, b, c] = all.map(nameOf) as [string, string, string];
  const another = (name: string, kind: string, uuid: string) =>
    `link delete dev ${name}; link add name ${name} mtu 1450 type ${kind}; link set dev ${name} alias ${uuid}`;
  for (const [meddling, first] of [
    [`link set dev ${a} alias theirs`, `link set dev ${a} alias ${gre.uuid}`],
    [`link set dev ${a} group 7`, `link set dev ${a} group ${deviceGroup}`],
    [`link set dev ${a} mtu 1000`, `link set dev ${a} mtu 1472`],
    [`link change dev ${a} type gre local 203.0.113.9 remote 198.51.100.2 ttl 64 key 1`, `link change dev ${a} `],
    [`link change dev ${a} type gre local 203.0.113.1 remote 198.51.100.9 ttl 64 key 1`, `link change dev ${a} `],
    [`link change dev ${a} type gre local 203.0.113.1 remote 198.51.100.2 ttl inherit key 1`, `link change dev ${a} `],
    [`link change dev ${a} type gre local 203.0.113.1 remote 198.51.100.2 ttl 64 key 9`, `link delete dev ${a}`],
    [
      `link change dev ${a} type gre local 203.0.113.1 remote 198.51.100.2 ttl 64 ikey 1 okey 9`,
      `link delete dev ${a}`,
    ],
    [`link change dev ${b} type ip6gre local 2001:db8::1 remote 2001:db8::9 hoplimit 64 key 2`, `link delete dev ${b}`],
    [`link change dev ${c} type geneve id 3 remote 198.51.100.4 ttl inherit`, `link change dev ${c} `],
    [`link change dev ${c} type geneve id 3 remote 198.51.100.9 ttl 64`, `link change dev ${c} `],
    [another(c, 'geneve id 3 remote 198.51.100.4 ttl 64 dstport 7777', geneve.uuid), `link delete dev ${c}`],
    [another(c, 'geneve id 8 remote 198.51.100.4 ttl 64 dstport 6081', geneve.uuid), `link delete dev ${c}`],
    [`address del 10.255.1.0/31 dev ${a}`, `address add 10.255.1.0/31 dev ${a}`],
    [`route del 10.200.1.0/24 via 10.255.1.1 dev ${a} metric 10`, 'route add 10.200.1.0/24 '],
    [`link set dev ${a} down`, `address add fd00:0:0:1::/127 dev ${a}`],
  ] as const) {
    const links = await withTunnels(...all);
    links.foreign(...meddling.split('; '));
    const mending = plan(links, ...all);
    assert.ok(linesOf(mending)[0]?.startsWith(first), `${meddling}: ${linesOf(mending)}`);
    assert.deepEqual(await carryOut(links, mending), [], meddling);
    assert.deepEqual(linesOf(plan(links, ...all)), [], meddling);
  }
});

test('a device that lost alias and group is known by its routes, or by where it ends', async () => {
  const [tunnel, other] = [tunnelOf(1), tunnelOf(2)];
  const bare = [`link set dev ${nameOf(tunnel)} alias`, `link set dev ${nameOf(tunnel)} group 0`];
  const links = await withTunnels(tunnel, other);
  links.foreign(...bare);
  assert.deepEqual(linesOf(plan(links, tunnel, other)), [
    `link set dev ${nameOf(tunnel)} alias ${tunnel.uuid}`,
    `link set dev ${nameOf(tunnel)} group ${deviceGroup}`,
  ]);
  // Nobody wants it any more: its routes tell that it is ours.
  assert.deepEqual(plan(links, other).dying, [nameOf(tunnel)]);
  links.foreign(`link set dev ${nameOf(tunnel)} down`);
  assert.equal(plan(links, tunnel, other).names.get(tunnel.uuid), nameOf(tunnel));
  assert.deepEqual(await carryOut(links, plan(links, tunnel, other)), []);
  assert.deepEqual(linesOf(plan(links, tunnel, other)), []);
});

test('tunnels without key change places with each other', async () => {
  const [a, b] = [tunnelOf(1, { keyed: false }), tunnelOf(2, { keyed: false })];
  const links = await withTunnels(a, b);
  const swapped = [
    { ...a, endpoint: b.endpoint },
    { ...b, endpoint: a.endpoint },
  ];
  assert.deepEqual(await carryOut(links, plan(links, ...swapped)), []);
  assert.deepEqual(linesOf(plan(links, ...swapped)), []);
});

test('a tunnel that is wanted no more falls silent at once, and its device is to be deleted', async () => {
  const [tunnel, other] = [tunnelOf(1), tunnelOf(2)];
  const links = await withTunnels(tunnel, other);
  const { first, then, dying, names } = plan(links, other);
  assert.deepEqual(
    first.map(({ line }) => line),
    [
      `address del fd00:0:0:1::/127 dev ${nameOf(tunnel)}`,
      `link set dev ${nameOf(tunnel)} down`,
      `address del 10.255.1.0/31 dev ${nameOf(tunnel)}`,
    ],
  );
  assert.deepEqual([then, dying, [...names.values()]], [[], [nameOf(tunnel)], [nameOf(other)]]);
  await links.run(first.map(({ line }) => line));
  const again = plan(links, other);
  assert.deepEqual([again.first, again.dying], [[], [nameOf(tunnel)]]);
  // Wanted again before it was deleted, it is taken up again.
  assert.deepEqual(await carryOut(links, plan(links, tunnel, other)), []);
  assert.deepEqual(linesOf(plan(links, tunnel, other)), []);
});

test('a device that is to be deleted makes room at once for one that has its key or its place', async () => {
  const old = tunnelOf(1);
  const heir = { ...tunnelOf(2), number: 1, endpoint: old.endpoint };
  const links = await withTunnels(old);
  const made = plan(links, heir);
  assert.deepEqual(
    made.first.map(({ line }) => line),
    [`link delete dev ${nameOf(old)}`],
  );
  assert.deepEqual(made.dying, []);
  assert.deepEqual(await carryOut(links, made), []);
});

test('a device that was made and not named further is finished, or deleted when nobody wants it', async () => {
  const tunnel = tunnelOf(1);
  const unfinished = () => {
    const links = createFakeLinks(routeProtocol);
    links.foreign(
      `link add name ${nameOf(tunnel)} mtu 1472 group ${deviceGroup} type gre local 203.0.113.1 remote 198.51.100.2 ttl 64 key 1`,
    );
    return links;
  };
  const links = unfinished();
  assert.equal(linesOf(plan(links, tunnel))[0], `link set dev ${nameOf(tunnel)} alias ${tunnel.uuid}`);
  assert.deepEqual(await carryOut(links, plan(links, tunnel)), []);
  assert.deepEqual(linesOf(plan(links, tunnel)), []);
  assert.deepEqual(plan(unfinished()).dying, [nameOf(tunnel)]);
});

test('a name that is somebody else’s is passed over, and their device stays', async () => {
  const tunnel = tunnelOf(1);
  const links = createFakeLinks(routeProtocol);
  links.foreign(`link add name ${nameOf(tunnel)} mtu 1400 type gre local 192.0.2.1 remote 192.0.2.2 ttl 64 key 9`);
  const made = plan(links, tunnel);
  assert.equal(made.names.get(tunnel.uuid), deviceName(tunnel.uuid, 1));
  assert.deepEqual(await carryOut(links, made), []);
  assert.deepEqual(linesOf(plan(links, tunnel)), []);
  assert.deepEqual(
    [...plan(links).first, ...plan(links).then].filter(({ line }) => line.includes(nameOf(tunnel))),
    [],
  );
});

test('an inner address that is in use elsewhere is an obstacle, and the device is not made', () => {
  const links = createFakeLinks(routeProtocol);
  links.foreign('link add name office mtu 1500 type dummy', 'address add 10.255.1.0/24 dev office');
  const made = plan(links, tunnelOf(1), tunnelOf(2));
  assert.deepEqual([...made.obstacles.values()], ['10.255.1.0 is an address of office already']);
  assert.ok(linesOf(made).every((line) => line.includes(nameOf(tunnelOf(2)))));
});

test('a local endpoint that no link has is told', () => {
  const links = createFakeLinks(routeProtocol);
  links.foreign('link add name lo mtu 65536 type dummy', 'address add 203.0.113.1/32 dev lo');
  const stranger = tunnelOf(2, { local_endpoint: '203.0.113.2' });
  assert.deepEqual(
    plan(links, tunnelOf(1), stranger).unseenLocals.map(({ uuid }) => uuid),
    [stranger.uuid],
  );
});

/** Few values, so that tunnels meet in keys, endpoints and places. What the control plane never gives twice is not given twice. */
const anyTunnels = fc
  .uniqueArray(fc.integer({ min: 1, max: 6 }), { maxLength: 6 })
  .chain((numbers) => fc.tuple(...numbers.map(anyTunnel)))
  .map((tunnels) => {
    const unkeyed = new Set<string>();
    return tunnels.filter(({ keyed, endpoint }) => {
      if (keyed === undefined) return true;
      if (unkeyed.has(endpoint)) return false;
      unkeyed.add(endpoint);
      return true;
    });
  });

function anyTunnel(n: number): fc.Arbitrary<AgentTunnel> {
  return fc
    .record({
      kind: fc.constantFrom('GRE', 'unkeyed', 'Geneve'),
      ipv6: fc.boolean(),
      at: fc.nat({ max: 2 }),
      number: fc.constantFrom(n, n + 10),
      moved: fc.boolean(),
    })
    .map(({ kind, ipv6, at, number, moved }) =>
      tunnelOf(n, {
        type: kind === 'Geneve' ? 'Geneve' : 'GRE',
        ...(kind === 'unkeyed' && { keyed: false }),
        ...(ipv6 ? { endpoint: `2001:db8::1${at}`, local_endpoint: '2001:db8::1' } : { endpoint: `198.51.100.1${at}` }),
        number,
        ips: [`10.200.${moved ? n + 10 : n}.0/24`, `2001:db8:${n}::/48`],
      }),
    );
}

test('from any tunnels to any others: no command fails, nothing is left to do, and what is not ours stays', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyTunnels, { minLength: 1, maxLength: 5 }), async (steps) => {
      const links = createFakeLinks(routeProtocol);
      links.foreign(
        'link add name lvown mtu 1400 type gre local 192.0.2.1 remote 192.0.2.2 ttl 64 key 1',
        'link set dev lvown up',
        'address add 192.0.2.8/31 dev lvown',
        'route add 192.0.3.0/24 dev lvown proto static',
      );
      const theirs = () => JSON.stringify(links.links().find(({ name }) => name === 'lvown'));
      const before = theirs();
      for (const tunnels of steps) {
        assert.deepEqual(await carryOut(links, plan(links, ...tunnels)), []);
        assert.deepEqual(linesOf(plan(links, ...tunnels)), []);
        assert.deepEqual(
          links
            .links()
            .map(({ name }) => name)
            .sort(),
          ['lvown', ...tunnels.map(nameOf)].sort(),
        );
      }
      assert.equal(theirs(), before);
    }),
    { numRuns: 300 },
  );
});
