/** Filters and tunnels on routers' streams: every router's filters, and to each router its own tunnels alone. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AgentChanges } from '@levee/contract/agent.ts';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import {
  type SeededProvider,
  seedDeletion,
  seedEnd,
  seedFilter,
  seedProvider,
  seedRule,
  seedTunnel,
  seedTunnelChange,
} from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { openStream, type StreamClient } from './testing/agent-client.ts';
import { enrolled, type Replica, startReplica } from './testing/replica.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

interface Place {
  readonly database: Database;
  readonly replica: Replica;
  readonly provider: SeededProvider;
  /** A stream that has its snapshot. */
  open(key: string, after?: string): Promise<StreamClient>;
}

async function withReplica(work: (place: Place) => Promise<void>): Promise<void> {
  const database = await postgres.createDatabase();
  const replica = await startReplica(database);
  const streams: StreamClient[] = [];
  try {
    const provider = await seedProvider(database.pool);
    const open = async (key: string, after?: string) => {
      const stream = await openStream(replica.base, key, after);
      streams.push(stream);
      await waitUntil(() => stream.cursor !== undefined, 'the beginning of a stream');
      return stream;
    };
    await work({ database, replica, provider, open });
  } finally {
    for (const stream of streams) stream.close();
    await replica.stop();
  }
}

const typesOf = (stream: StreamClient) => stream.messages.map((message) => message.type);
const lastChange = (stream: StreamClient) =>
  stream.messages.findLast((message): message is AgentChanges => message.type === 'changes');

test('a snapshot has rules, filters and the tunnels that end at the router, none of them marked', async () => {
  await withReplica(async ({ database: { pool }, database, provider, open }) => {
    const [here, elsewhere] = [await enrolled(database, 'here'), await enrolled(database, 'elsewhere')];
    const rule = await seedRule(pool, provider);
    const ports = { dst: { start: 53, end: 53 } };
    const filter = await seedFilter(pool, provider, { port: ports, ratelimit: 500 });
    await seedDeletion(pool, (await seedFilter(pool, provider)).uuid, 'filter');
    const [own, foreign, marked, retired] = await Promise.all([1, 2, 3, 4].map(() => seedTunnel(pool, provider)));
    const both = await seedTunnel(pool, provider, { keyed: false, locations: ['fra1'] });
    await seedEnd(pool, own?.uuid ?? '', here.uuid, 1);
    await seedEnd(pool, foreign?.uuid ?? '', elsewhere.uuid, 2);
    await seedEnd(pool, marked?.uuid ?? '', here.uuid, 3);
    await seedDeletion(pool, marked?.uuid ?? '', 'tunnel');
    await seedEnd(pool, retired?.uuid ?? '', here.uuid, 4);
    await pool.query('update tunnel_end set retired = true where tunnel_uuid = $1', [retired?.uuid]);
    await seedEnd(pool, both.uuid, elsewhere.uuid, 5);
    await seedEnd(pool, both.uuid, here.uuid, 6);
    const { rows } = await pool.query('select sequence from tunnel where uuid = $1', [both.uuid]);

    const stream = await open(here.key);
    assert.deepEqual(typesOf(stream), ['hello', 'snapshot_begin', 'rules', 'filters', 'tunnels', 'snapshot_end']);
    assert.deepEqual([...stream.rules.keys()], [rule.uuid]);
    assert.deepEqual(
      [...stream.filters.values()],
      [
        {
          uuid: filter.uuid,
          sequence: filter.change.position,
          dst: '198.18.0.1',
          filter: 22,
          priority: 1000,
          port: ports,
          ratelimit: 500,
        },
      ],
    );
    assert.deepEqual([...stream.tunnels.keys()].sort(), [own?.uuid, both.uuid].sort());
    assert.deepEqual(stream.tunnels.get(both.uuid), {
      uuid: both.uuid,
      sequence: rows[0].sequence,
      type: 'GRE',
      keyed: false,
      ips: ['198.18.0.0/28'],
      endpoint: '198.51.100.9',
      local_endpoint: '192.0.2.1',
      number: 6,
      inner_ipv4: '10.255.0.12/31',
      inner_ipv6: 'fd00::c/127',
    });
  });
});

test('a filter comes, changes and goes at every router by the same line, beside rules', async () => {
  await withReplica(async ({ database: { pool }, database, replica, provider, open }) => {
    const streams = [await open((await enrolled(database, 'a')).key), await open((await enrolled(database, 'b')).key)];
    const made = await seedFilter(pool, provider);
    replica.tail.wake();
    for (const stream of streams) await waitUntil(() => stream.filters.has(made.uuid), 'the filter');
    const texts = streams.map((stream) => JSON.stringify(lastChange(stream)));
    assert.equal(texts[0], texts[1]);
    assert.deepEqual(lastChange(streams[0] as StreamClient)?.upsert, []);
    const rule = await seedRule(pool, provider);
    await seedDeletion(pool, made.uuid, 'filter');
    replica.tail.wake();
    for (const stream of streams) {
      await waitUntil(() => stream.rules.has(rule.uuid) && !stream.filters.has(made.uuid), 'both changes');
      assert.equal(lastChange(stream)?.filters, undefined);
    }
  });
});

test('a change of a tunnel brings each router its own end, and takes it from those that have none', async () => {
  await withReplica(async ({ database: { pool }, database, replica, provider, open }) => {
    const routers = [await enrolled(database, 'a'), await enrolled(database, 'b'), await enrolled(database, 'c')];
    const [a, b, c] = await Promise.all(routers.map(({ key }) => open(key)));
    assert.ok(a !== undefined && b !== undefined && c !== undefined);
    const numbersOf = (uuid: string) => [a, b, c].map((stream) => stream.tunnels.get(uuid)?.number);
    const settle = async (change: { uuid: string }, expected: readonly (number | undefined)[]) => {
      replica.tail.wake();
      await waitUntil(() => numbersOf(change.uuid).join() === expected.join(), `${expected}`);
    };
    const client = await pool.connect();
    await client.query('begin');
    const { uuid } = await seedTunnel(client, provider);
    await seedEnd(client, uuid, routers[0]?.uuid ?? '', 1);
    await seedEnd(client, uuid, routers[1]?.uuid ?? '', 2);
    const filter = await seedFilter(client, provider);
    await client.query('commit');
    client.release();
    await settle({ uuid }, [1, 2, undefined]);
    for (const stream of [a, b, c]) assert.ok(stream.filters.has(filter.uuid), 'what else the transaction did');
    await waitUntil(() => lastChange(c)?.remove.includes(uuid) === true, 'the one without an end to be told so');

    await pool.query('update tunnel_end set retired = true where router_uuid = $1', [routers[0]?.uuid]);
    await seedEnd(pool, uuid, routers[2]?.uuid ?? '', 3);
    await settle(await seedTunnelChange(pool, uuid), [undefined, 2, 3]);
    await pool.query('update tunnel_end set retired = false where router_uuid = $1', [routers[0]?.uuid]);
    await settle(await seedTunnelChange(pool, uuid), [1, 2, 3]);
    await settle(await seedDeletion(pool, uuid, 'tunnel'), [undefined, undefined, undefined]);
    for (const stream of [a, b, c]) assert.deepEqual(lastChange(stream)?.tunnels, undefined);
  });
});

test('a router that comes back gets what its tunnels became meanwhile, however far behind it is', async () => {
  await withReplica(async ({ database: { pool }, database, replica, provider, open }) => {
    const [own, other] = [await enrolled(database, 'own'), await enrolled(database, 'other')];
    const [stays, goes, leaves] = await Promise.all([1, 2, 3].map(() => seedTunnel(pool, provider)));
    for (const [index, tunnel] of [stays, goes, leaves].entries()) {
      await seedEnd(pool, tunnel?.uuid ?? '', own.uuid, index + 1);
      await seedEnd(pool, tunnel?.uuid ?? '', other.uuid, index + 11);
    }
    const first = await open(own.key);
    assert.equal(first.tunnels.size, 3);
    const before = first.cursor as string;
    first.close();
    await seedDeletion(pool, goes?.uuid ?? '', 'tunnel');
    await pool.query('update tunnel_end set retired = true where tunnel_uuid = $1', [leaves?.uuid]);
    await seedTunnelChange(pool, leaves?.uuid ?? '');
    await pool.query(`update tunnel_end set local_endpoint = '192.0.2.7' where tunnel_uuid = $1`, [stays?.uuid]);
    await seedTunnelChange(pool, stays?.uuid ?? '');
    const expected = (stream: StreamClient) => {
      assert.ok(!typesOf(stream).includes('snapshot_begin'));
      const messages = stream.messages.filter((message): message is AgentChanges => message.type === 'changes');
      const tunnels = messages.flatMap((message) => message.tunnels ?? []);
      assert.deepEqual(
        tunnels.map(({ uuid, number, local_endpoint }) => [uuid, number, local_endpoint]),
        [[stays?.uuid, 1, '192.0.2.7']],
      );
      const removed = messages.flatMap((message) => message.remove);
      assert.deepEqual(removed.sort(), [goes?.uuid, leaves?.uuid].sort());
    };
    expected(await open(own.key, before));

    // More than a page of entries: they are read by the stream itself, not by the tail.
    await pool.query(`insert into change (kind, object_uuid) select 'rdns', $1 from generate_series(1, 6000)`, [
      newUuid(),
    ]);
    replica.tail.wake();
    const far = await open(own.key, before);
    await waitUntil(() => far.messages.length > 1, 'what was missed');
    expected(far);
  });
});

test('more tunnels than are held at once come in parts, and the cursor moves with the last of them', async () => {
  await withReplica(async ({ database: { pool }, database, replica, provider, open }) => {
    const { key, uuid } = await enrolled(database, 'many');
    const stream = await open(key);
    const client = await pool.connect();
    await client.query('begin');
    await client.query(
      `with made as (
          insert into tunnel (uuid, sequence, owner_uuid, provider_uuid, endpoint, type, fields, created_at, updated_at,
            change_position)
          select gen_random_uuid(), n, $1, $1, '198.51.100.9', 'GRE',
            '{"ips":["198.18.0.0/28"],"endpoint":"198.51.100.9","type":"GRE"}', now(), now(), n
          from (select nextval('change_position') as n from generate_series(1, 20500)) numbers
          returning uuid, sequence, change_position
        ), ends as (
          insert into tunnel_end (tunnel_uuid, router_uuid, local_endpoint, number, inner_ipv4, inner_ipv6)
          select uuid, $2, '192.0.2.1', sequence, set_masklen('10.128.0.0'::inet + 2 * sequence, 31)::cidr,
            set_masklen('fd00::'::inet + 2 * sequence, 127)::cidr
          from made
        )
        insert into change (position, kind, object_uuid) select change_position, 'tunnel', uuid from made`,
      [provider.uuid, uuid],
    );
    const rule = await seedRule(client, provider);
    await client.query('commit');
    client.release();
    replica.tail.wake();
    await waitUntil(() => stream.rules.has(rule.uuid), 'all of it', 20_000);
    const covers = (text: string) => {
      const cursor = replica.agents.cursors.read(text);
      assert.ok(typeof cursor === 'object');
      return cursor.xid >= Number(rule.change.xid);
    };
    const parts = stream.messages.filter((message): message is AgentChanges => message.type === 'changes');
    assert.deepEqual(
      parts.map(({ cursor, tunnels, upsert }) => [covers(cursor), tunnels?.length, upsert.length]),
      [
        [false, 20_000, 0],
        [true, 500, 1],
      ],
    );
    assert.equal(stream.tunnels.size, 20_500);
  });
});
