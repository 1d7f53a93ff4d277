import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from './database.ts';
import { violatedConstraint } from './failure.ts';
import { newUuid } from './new-uuid.ts';
import { type SeededProvider, seedProvider, seedRule } from './testing/seed.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';
import { violations } from './violations.ts';

let postgres: TestPostgres;
let database: Database;
before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
});
after(() => postgres?.stop());

async function refusal(text: string, values: unknown[] = []): Promise<string | undefined> {
  try {
    await database.pool.query(text, values);
    return 'accepted';
  } catch (error) {
    return violatedConstraint(error) ?? String(error);
  }
}

async function user(provider: SeededProvider): Promise<string> {
  const uuid = newUuid();
  await database.pool.query(
    `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
      values ($1, 'user', $2, $3, $3, $3 || '@example.net', 'x')`,
    [uuid, provider.uuid, uuid],
  );
  return uuid;
}

const GRANT = `insert into subnet (account_uuid, subnet, role, provider_uuid, provider_subnet) values ($1, $2, $3, $4, $5)`;

test('two providers never overlap, in either direction and either family', async () => {
  const [a, b] = [await seedProvider(database.pool, '10.0.0.0/16'), await seedProvider(database.pool, '10.1.0.0/16')];
  for (const taken of ['10.0.0.0/16', '10.0.5.0/24', '10.0.0.0/8']) {
    assert.equal(await refusal(GRANT, [b.uuid, taken, 'provider', b.uuid, null]), 'subnet_provider_overlap');
  }
  assert.equal(await refusal(GRANT, [a.uuid, '2001:db8::/32', 'provider', a.uuid, null]), 'accepted');
  assert.equal(await refusal(GRANT, [b.uuid, '2001:db8:1::/48', 'provider', b.uuid, null]), 'subnet_provider_overlap');
});

test("a user's subnet lies inside a prefix that its own provider holds, and overlaps no other user's", async () => {
  const [a, b] = [await seedProvider(database.pool, '10.2.0.0/16'), await seedProvider(database.pool, '10.3.0.0/16')];
  const [one, two] = [await user(a), await user(a)];
  assert.equal(await refusal(GRANT, [one, '10.2.1.0/24', 'user', a.uuid, '10.2.0.0/16']), 'accepted');
  const cases: [unknown[], string][] = [
    [[two, '10.2.1.128/25', 'user', a.uuid, '10.2.0.0/16'], 'subnet_user_overlap'],
    [[two, '10.2.0.0/16', 'user', a.uuid, '10.2.0.0/16'], 'subnet_user_overlap'],
    [[two, '10.4.0.0/24', 'user', a.uuid, '10.2.0.0/16'], 'subnet_inside_provider'],
    [[two, '10.2.2.0/24', 'user', a.uuid, '10.2.0.0/15'], 'subnet_provider_holds'],
    [[two, '10.3.2.0/24', 'user', b.uuid, '10.3.0.0/16'], 'subnet_account_provider'],
    [[two, '10.2.2.0/24', 'user', a.uuid, null], 'subnet_inside_provider'],
    [[two, '10.200.0.0/24', 'provider', a.uuid, null], 'subnet_account_role'],
    [[one, '10.2.1.0/24', 'user', a.uuid, '10.2.0.0/16'], 'subnet_pkey'],
  ];
  for (const [values, name] of cases) assert.equal(await refusal(GRANT, values), name, JSON.stringify(values));
});

test('two users who are granted the same subnet at the same moment: one gets it', async () => {
  const provider = await seedProvider(database.pool, '10.5.0.0/16');
  const users = await Promise.all(Array.from({ length: 6 }, () => user(provider)));
  const results = await Promise.all(
    users.map((uuid, i) =>
      refusal(GRANT, [uuid, i % 2 === 0 ? '10.5.1.0/24' : '10.5.1.0/25', 'user', provider.uuid, provider.prefix]),
    ),
  );
  assert.equal(results.filter((result) => result === 'accepted').length, 1);
  assert.equal(results.filter((result) => result === 'subnet_user_overlap').length, 5);
});

test("no rule lies outside its owner's subnets, and a subnet with live rules cannot go", async () => {
  const provider = await seedProvider(database.pool, '10.6.0.0/16');
  const rule = await seedRule(database.pool, provider, { dst: '10.6.0.1' });
  const change = (set: string) => refusal(`update firewall_rule set ${set} where uuid = $1`, [rule.uuid]);
  assert.equal(await change(`dst = '10.7.0.1'`), 'firewall_rule_inside_subnet');
  assert.equal(await change(`subnet = '10.0.0.0/8'`), 'firewall_rule_subnet');
  assert.equal(await change('subnet = null'), 'firewall_rule_subnet_until_deleted');
  assert.equal(await change('deletion_marked_at = now()'), 'firewall_rule_subnet_until_deleted');
  const drop = ['delete from subnet where account_uuid = $1', [provider.uuid]] as const;
  assert.equal(await refusal(drop[0], [...drop[1]]), 'firewall_rule_subnet');
  assert.equal(await change('deletion_marked_at = now(), subnet = null'), 'accepted');
  assert.equal(await refusal(drop[0], [...drop[1]]), 'accepted');
});

test('an address that routers end tunnels at is one router’s, and neither routed into a tunnel nor its far end', async () => {
  const provider = await seedProvider(database.pool, '10.11.0.0/16');
  const [place, one, two, tunnel] = [newUuid(), newUuid(), newUuid(), newUuid()];
  await database.pool.query(`insert into location (uuid, name) values ($1, $2)`, [place, place]);
  await database.pool.query(
    `insert into router (uuid, name, location_uuid) select u, u::text, $1 from unnest($2::uuid[]) u`,
    [place, [one, two]],
  );
  await database.pool.query(
    `insert into tunnel (uuid, sequence, owner_uuid, provider_uuid, endpoint, type, fields, created_at, updated_at,
        change_position)
      values ($1, nextval('change_position'), $2, $2, '198.51.100.9', 'GRE', '{}', now(), now(), 1)`,
    [tunnel, provider.uuid],
  );
  const give = (router: string, address: string) =>
    refusal('insert into router_address (router_uuid, address) values ($1, $2)', [router, address]);
  const route = (routed: string) =>
    refusal('insert into tunnel_subnet (tunnel_uuid, owner_uuid, routed, subnet) values ($1, $2, $3, $4)', [
      tunnel,
      provider.uuid,
      routed,
      provider.prefix,
    ]);
  assert.equal(await give(one, '10.11.0.1'), 'accepted');
  assert.equal(await give(one, '10.11.0.2'), 'router_address_pkey', 'a second one of the family');
  assert.equal(await give(two, '10.11.0.1'), 'router_address_taken');
  for (const unusable of ['0.0.0.0', '127.0.0.1', '169.254.0.1', '224.0.0.1', '::', '::1', 'fe80::1', '192.0.2.0/24'])
    assert.equal(await give(two, unusable), 'router_address_usable', unusable);
  assert.equal(await route('10.11.0.0/24'), 'tunnel_subnet_no_router');
  assert.equal(await route('10.11.1.0/24'), 'accepted');
  assert.equal(await give(two, '10.11.1.7'), 'router_address_not_routed');
  assert.equal(await give(two, '198.51.100.9'), 'router_address_no_endpoint');
  const end = (endpoint: string) => refusal('update tunnel set endpoint = $2 where uuid = $1', [tunnel, endpoint]);
  assert.equal(await end('10.11.0.1'), 'tunnel_endpoint_no_router');
  assert.equal(await end('10.11.0.2'), 'accepted');
});

test('tunnels go into one another in no circle, of however many, and never deeper than leaves something of a packet', async () => {
  const provider = await seedProvider(database.pool, '10.12.0.0/16');
  const make = async (endpoint: string): Promise<string> => {
    const uuid = newUuid();
    await database.pool.query(
      `insert into tunnel (uuid, sequence, owner_uuid, provider_uuid, endpoint, type, fields, created_at, updated_at,
          change_position)
        values ($1, nextval('change_position'), $2, $2, $3, 'GRE', '{}', now(), now(), 1)`,
      [uuid, provider.uuid, endpoint],
    );
    return uuid;
  };
  const route = (tunnel: string, routed: string) =>
    refusal('insert into tunnel_subnet (tunnel_uuid, owner_uuid, routed, subnet) values ($1, $2, $3, $4)', [
      tunnel,
      provider.uuid,
      routed,
      provider.prefix,
    ]);
  const end = (tunnel: string, endpoint: string) =>
    refusal('update tunnel set endpoint = $2 where uuid = $1', [tunnel, endpoint]);
  const [a, b, c] = [await make('10.12.2.1'), await make('10.12.3.1'), await make('198.51.100.9')];
  assert.equal(await route(a, '10.12.2.0/24'), 'tunnel_subnet_no_circle', 'into itself');
  assert.equal(await route(a, '10.12.1.0/24'), 'accepted');
  assert.equal(await end(a, '10.12.1.1'), 'tunnel_endpoint_no_circle', 'into itself');
  for (const [tunnel, routed] of [
    [b, '10.12.2.0/24'],
    [c, '10.12.3.0/24'],
  ] as const) {
    assert.equal(await route(tunnel, routed), 'accepted', routed);
  }
  assert.equal(await end(b, '10.12.1.1'), 'tunnel_endpoint_no_circle', 'a circle of two');
  assert.equal(await end(c, '10.12.1.1'), 'tunnel_endpoint_no_circle', 'a circle of three');
  assert.equal(await end(c, '10.12.4.1'), 'accepted');
  assert.equal(await route(a, '10.12.4.0/24'), 'tunnel_subnet_no_circle', 'a circle of three');
  assert.equal(await route(b, '10.12.4.0/24'), 'tunnel_subnet_no_circle', 'a circle of two');
  await database.pool.query('delete from tunnel_subnet where tunnel_uuid = $1', [b]);
  assert.equal(await route(a, '10.12.4.0/24'), 'accepted', 'what is routed no more leads nowhere');

  const pair = [await make('198.51.100.9'), await make('198.51.100.9')] as const;
  for (const [at, tunnel] of pair.entries()) assert.equal(await route(tunnel, `10.12.5.${at}`), 'accepted');
  const answers = await Promise.all([end(pair[0], '10.12.5.1'), end(pair[1], '10.12.5.0')]);
  assert.deepEqual(answers.sort(), ['accepted', 'tunnel_endpoint_no_circle'], 'of two at the same moment');

  // n ends inside what n + 1 routes.
  for (let n = 1; n <= 64; n++)
    assert.equal(await route(await make(`10.12.100.${n + 1}`), `10.12.100.${n}`), 'accepted');
  const deepest = await make('10.12.100.2');
  assert.equal(await end(deepest, '10.12.100.1'), 'tunnel_endpoint_no_circle', 'in more than 64');
});

test('an account has the provider that its role asks for', async () => {
  const provider = await seedProvider(database.pool, '10.8.0.0/16');
  const someone = await user(provider);
  const insert = `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
    values (gen_random_uuid(), $1, $2, 'x', 'u', $3, 'x')`;
  assert.equal(await refusal(insert, ['operator', provider.uuid, null]), 'account_provider_of_role');
  assert.equal(await refusal(insert, ['provider', null, null]), 'account_provider_of_role');
  assert.equal(await refusal(insert, ['user', null, 'a@example.net']), 'account_provider_of_role');
  assert.equal(await refusal(insert, ['user', someone, 'a@example.net']), 'account_provider_exists');
  assert.equal(await refusal(insert, ['user', provider.uuid, null]), 'account_user_complete');
  assert.equal(await refusal(insert, ['user', provider.uuid, 'a@example.net']), 'accepted');
  assert.equal(await refusal(insert, ['user', provider.uuid, 'b@example.net']), 'account_username');
});

test('an email is taken whatever the case of its letters, and free again once its account is deleted', async () => {
  const [a, b] = [await seedProvider(database.pool, '10.9.0.0/16'), await seedProvider(database.pool, '10.10.0.0/16')];
  const insert = `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
    values (gen_random_uuid(), 'user', $1, 'x', 'someone', $2, 'x')`;
  assert.equal(await refusal(insert, [a.uuid, 'Some@Example.net']), 'accepted');
  assert.equal(await refusal(insert, [b.uuid, 'some@example.NET']), 'account_email');
  await database.pool.query(`update account set deletion_marked_at = now() where email = 'Some@Example.net'`);
  assert.equal(await refusal(insert, [b.uuid, 'some@example.NET']), 'accepted');
});

test('every constraint that is mapped to an error exists, under that name', async () => {
  const { rows } = await database.pool.query(
    `select conname as name from pg_constraint union select indexname from pg_indexes where schemaname = 'public'`,
  );
  const names = new Set(rows.map((row) => row.name));
  for (const name of Object.keys(violations)) assert.ok(names.has(name), name);
});
