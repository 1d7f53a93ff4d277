/**
 * Guarantees for reverse DNS on whole control planes with nothing but what they bring: a record that is answered as
 * active is answered by `dig -x`, on every replica and by a standard secondary, until it is deleted.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { DnsAddress } from '@levee/server/backends/dns/dns-server.ts';
import {
  dig,
  digShort,
  digStatus,
  freePort,
  missingPrograms,
  type RunningProgram,
  startKnot,
} from '@levee/server/backends/dns/testing/programs.ts';
import { type ServerHandle, startServer } from '@levee/server/main.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { pino } from 'pino';

const four = '113.0.203.in-addr.arpa';
const six = '8.b.d.0.1.0.0.2.ip6.arpa';
const classless = '64/26.100.51.198.in-addr.arpa';
const folder = mkdtempSync(join(tmpdir(), `levee-rdns-${process.pid}-`));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Reply {
  readonly status: number;
  readonly applied: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it.
  readonly body: any;
}

async function ask(server: ServerHandle, key: string, method: string, path: string, body?: object): Promise<Reply> {
  const response = await fetch(`${server.address}/v1${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json', prefer: 'wait=10' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, applied: response.headers.get('preference-applied'), body: await response.json() };
}

async function good(server: ServerHandle, key: string, method: string, path: string, body?: object): Promise<Reply> {
  const reply = await ask(server, key, method, path, body);
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply;
}

function dnsOf(server: ServerHandle): DnsAddress {
  const address = server.dns?.addresses[0];
  assert.ok(address !== undefined);
  return address;
}

async function start(name: string, databaseUrl?: string): Promise<ServerHandle> {
  const started = await startServer({
    listen: { host: '127.0.0.1', port: 0 },
    dataDirectory: join(folder, name),
    databaseUrl,
    dns: { listen: [{ host: '127.0.0.1', port: 0 }], answersPerSecond: 0 },
    log: pino({ level: 'silent' }),
  });
  assert.ok(started.ok, started.ok ? '' : started.message);
  return started.server;
}

/** The records of a zone as a transfer gives them, without what dig adds. */
async function zoneAt(server: DnsAddress, zone: string): Promise<string[]> {
  const text = await dig(server, '+onesoa', zone, 'AXFR');
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.replaceAll(/\s+/g, ' '))
    .sort();
}

describe('reverse DNS', { skip: missingPrograms('bind9-dnsutils', 'knot') }, () => {
  let first: ServerHandle;
  let second: ServerHandle;
  let knot: RunningProgram;
  let knotAt: DnsAddress;
  let operator: string;
  let user: string;
  let databaseUrl: string;

  before(async () => {
    first = await start('first');
    const database = first.database.address;
    assert.ok('socketDirectory' in database);
    databaseUrl = `postgresql://${database.user}@/${database.database}?host=${encodeURIComponent(database.socketDirectory)}`;
    second = await start('second', databaseUrl);
    operator = first.newOperatorKey ?? '';
    knotAt = { host: '127.0.0.1', port: await freePort() };
    for (const zone of [four, six, classless]) {
      await good(first, operator, 'POST', '/operator/rdns-zone', {
        zone,
        driver: 'embedded',
        nameservers: ['ns1.example.net', 'ns2.example.net'],
        admin: 'hostmaster@example.net',
        secondaries: [`127.0.0.1:${knotAt.port}`],
      });
    }
    knot = startKnot(knotAt.port, { zones: [four, classless], primary: dnsOf(first) });
    const prefixes = ['203.0.113.0/24', '2001:db8::/32', '198.51.100.64/26'];
    const provider = await good(first, operator, 'POST', '/operator/provider', { name: 'p', prefixes });
    const made = await good(first, operator, 'POST', '/api-key', { account_uuid: provider.body.uuid, name: 'k' });
    const account = { username: 'alice', email: 'alice@example.net', password: 'correct horse 7 battery' };
    const alice = await good(first, made.body.key, 'POST', '/user', { ...account, ips: prefixes });
    const key = await good(first, made.body.key, 'POST', '/api-key', { account_uuid: alice.body.uuid, name: 'k' });
    user = key.body.key;
  });
  after(async () => {
    await knot?.stop();
    await second?.close();
    await first?.close();
  });

  /** Replicas follow on their own; the one that carried the change out has answered. */
  const everywhere = async (expected: string, ...args: string[]) => {
    for (const server of [first, second]) {
      const holds = async () => (await digShort(dnsOf(server), ...args)).join() === expected;
      await waitUntil(holds, `${args.join(' ')} to be ${expected || 'nothing'}`);
    }
  };

  for (const [address, record, owner] of [
    ['203.0.113.7', 'mail.example.net', `7.${four}`],
    ['2001:db8::7', 'six.example.net', `7${'.0'.repeat(23)}.${six}`],
    ['198.51.100.70', 'classless.example.net', `70.${classless}`],
  ] as const) {
    test(`${address}: created, changed and deleted, each seen by dig as soon as it is said to be applied`, async () => {
      const created = await good(second, user, 'POST', '/rdns', { ips: address, record });
      assert.deepEqual([created.body.state, created.applied], ['active', 'wait=10, outcome=applied']);
      await everywhere(`${record}.`, owner, 'PTR');
      const changed = await good(first, user, 'PUT', '/rdns', { ips: address, record: `new-${record}` });
      assert.equal(changed.body.state, 'active');
      await everywhere(`new-${record}.`, owner, 'PTR');
      const deleted = await good(second, user, 'DELETE', '/rdns', { ips: address });
      assert.deepEqual([deleted.body.state, deleted.applied], ['marked_for_deletion', 'wait=10, outcome=applied']);
      await everywhere('', owner, 'PTR');
      for (const server of [first, second])
        assert.equal((await digStatus(dnsOf(server), owner, 'PTR')).status, 'NXDOMAIN');
    });
  }

  test('changes on both replicas at once end in one zone under one serial, at both and at the secondary', async () => {
    const hosts = Array.from({ length: 60 }, (_, index) => index + 100);
    const turn = async (host: number) => {
      const ips = `203.0.113.${host}`;
      const [one, other] = host % 2 === 0 ? [first, second] : [second, first];
      await good(one, user, 'POST', '/rdns', { ips, record: `h${host}.example.net` });
      if (host % 3 === 0) await good(other, user, 'PUT', '/rdns', { ips, record: `again${host}.example.net` });
      if (host % 5 === 0) await good(other, user, 'DELETE', '/rdns', { ips });
    };
    const waiting = [...hosts];
    const worker = async () => {
      for (let host = waiting.pop(); host !== undefined; host = waiting.pop()) await turn(host);
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    const expected = hosts
      .filter((host) => host % 5 !== 0)
      .map((host) => `${host}.${four}. 300 IN PTR ${host % 3 === 0 ? 'again' : 'h'}${host}.example.net.`);
    let zone: string[] = [];
    await waitUntil(async () => {
      zone = await zoneAt(dnsOf(first), four);
      return zone.join('\n') === (await zoneAt(dnsOf(second), four)).join('\n');
    }, 'both to serve the same');
    assert.deepEqual(
      zone.filter((line) => line.includes(' PTR ')),
      expected.sort(),
    );
    const soa = (await digShort(dnsOf(first), four, 'SOA')).join();
    const follows = async () => (await digShort(knotAt, '+norec', four, 'SOA').catch(() => [])).join() === soa;
    await waitUntil(follows, 'Knot to have the serial', 30_000);
    assert.deepEqual(await digShort(knotAt, '+norec', `101.${four}`, 'PTR'), ['h101.example.net.']);
    const [, , serial] = soa.split(' ');
    const states = () => [first, second].flatMap((server) => server.dns?.secondaries(four) ?? []);
    await waitUntil(
      () => states().some((state) => String(state.acknowledgedSerial) === serial),
      'an acknowledgement',
      30_000,
    );
    const { body: zones } = await good(first, operator, 'GET', '/operator/rdns-zone');
    const { status } = zones.find((each: { zone: string }) => each.zone === four);
    const taken = status.secondaries.map(({ secondary, transferred_serial }: Record<string, unknown>) => [
      secondary,
      String(transferred_serial),
    ]);
    assert.deepEqual(taken, [[`127.0.0.1:${knotAt.port}`, serial]]);
  });

  test('a replica that starts serves what was there, under the same serial', async () => {
    await good(first, user, 'POST', '/rdns', { ips: '203.0.113.9', record: 'kept.example.net' });
    const third = await start('third', databaseUrl);
    try {
      assert.deepEqual(await zoneAt(dnsOf(third), four), await zoneAt(dnsOf(first), four));
    } finally {
      await third.close();
    }
  });

  test('an address in a classless zone inside an embedded one is found by its name, here and at a secondary of the wider one', async () => {
    const half = `0/25.${four}`;
    const ips = '203.0.113.31';
    await good(first, user, 'POST', '/rdns', { ips, record: 'before.example.net' });
    const made = await good(first, operator, 'POST', '/operator/rdns-zone', { zone: half, driver: 'embedded' });
    const { zone, made_by, records } = made.body.delegation;
    assert.deepEqual([zone, made_by], [four, 'levee']);
    assert.ok(records.includes(`${half}. IN NS ns1.example.net.`), records.join());
    await everywhere(`31.${half}.,before.example.net.`, '-x', ips);
    const changed = await good(second, user, 'PUT', '/rdns', { ips, record: 'inside.example.net' });
    assert.equal(changed.body.applied[0].zone, half);
    await everywhere(`31.${half}.,inside.example.net.`, '-x', ips);
    await everywhere(`inside.example.net.`, `31.${half}`, 'PTR');
    await everywhere('h101.example.net.', `101.${half}`, 'PTR');
    const whole = await zoneAt(dnsOf(first), four);
    assert.deepEqual(whole, await zoneAt(dnsOf(second), four));
    for (const host of [0, 31, 127])
      assert.ok(whole.includes(`${host}.${four}. 300 IN CNAME ${host}.${half}.`), `${host}`);
    assert.equal(whole.filter((line) => line.includes(' CNAME ')).length, 128);
    assert.deepEqual(
      whole.filter((line) => line.startsWith(`${half}. `)),
      [`${half}. 300 IN NS ns1.example.net.`, `${half}. 300 IN NS ns2.example.net.`],
    );
    // Knot has the wider zone alone.
    const short = async () => (await digShort(knotAt, '+norec', '-x', ips).catch(() => [])).join();
    await waitUntil(async () => (await short()) === `31.${half}.`, 'the secondary to lead there', 30_000);
    assert.match(
      await dig(knotAt, '+norec', `31.${half}`, 'PTR'),
      /AUTHORITY SECTION:\n0\/25\S+\s+300\s+IN\s+NS\s+ns1\./,
    );

    await good(first, operator, 'DELETE', `/operator/rdns-zone/${made.body.uuid}`);
    await everywhere('inside.example.net.', '-x', ips);
    await waitUntil(async () => (await short()) === 'inside.example.net.', 'the secondary to have it again', 30_000);
    const after = await zoneAt(dnsOf(first), four);
    assert.deepEqual(
      after.filter((line) => line.includes('CNAME') || line.startsWith(half)),
      [],
    );
  });

  test('a zone that begins at a label of an embedded one is delegated to its own name servers, whoever keeps it', async () => {
    const inner = `7.0.0.0.${six}`;
    const body = { zone: inner, driver: 'rfc2136', server: '127.0.0.1:9', nameservers: ['ns9.example.net'] };
    const made = await good(first, operator, 'POST', '/operator/rdns-zone', body);
    assert.deepEqual(made.body.delegation, {
      zone: six,
      made_by: 'levee',
      records: [`${inner}. IN NS ns9.example.net.`],
    });
    const refers = async () => (await dig(dnsOf(second), '+norec', '-x', '2001:db8:7::1')).includes('ns9.example.net.');
    await waitUntil(refers, 'the referral');
    const { status, flags } = await digStatus(dnsOf(second), '+norec', '-x', '2001:db8:7::1');
    assert.deepEqual([status, flags.includes('aa')], ['NOERROR', false]);
    assert.ok((await zoneAt(dnsOf(first), six)).includes(`${inner}. 300 IN NS ns9.example.net.`));
    await good(first, operator, 'PATCH', `/operator/rdns-zone/${made.body.uuid}`, { nameservers: ['ns8.example.net'] });
    const moved = async () => (await dig(dnsOf(second), '+norec', '-x', '2001:db8:7::1')).includes('ns8.example.net.');
    await waitUntil(moved, 'the new delegation');
    await good(first, operator, 'DELETE', `/operator/rdns-zone/${made.body.uuid}`);
  });

  test('a zone that the operator takes away is refused, one that is added serves what waited for it', async () => {
    const zone = '100.51.198.in-addr.arpa';
    const { body: zones } = await good(first, operator, 'GET', '/operator/rdns-zone');
    const old = zones.find((each: { zone: string }) => each.zone === classless);
    await good(first, operator, 'DELETE', `/operator/rdns-zone/${old.uuid}`);
    for (const server of [first, second]) {
      const isRefused = async () => (await digStatus(dnsOf(server), `70.${classless}`, 'PTR')).status === 'REFUSED';
      await waitUntil(isRefused, 'the zone to be refused');
    }
    const waits = await good(first, user, 'POST', '/rdns', { ips: '198.51.100.71', record: 'waits.example.net' });
    assert.equal(waits.body.state, 'pending');
    await good(first, operator, 'POST', '/operator/rdns-zone', { zone, driver: 'embedded' });
    await everywhere('waits.example.net.', '-x', '198.51.100.71');
  });
});

test('an address that DNS cannot have keeps the control plane from starting, and says how to go on', async () => {
  const listen = { host: '127.0.0.1', port: 0 };
  const dataDirectory = join(folder, 'refused');
  const log = pino({ level: 'silent' });
  const dns = { listen: [{ host: '192.0.2.1', port: 5300 }], answersPerSecond: 0 };
  const started = await startServer({ listen, dataDirectory, dns, log });
  assert.ok(!started.ok);
  assert.match(started.message, /^cannot serve DNS on 192\.0\.2\.1:5300: .*EADDRNOTAVAIL.*LEVEE_DNS_LISTEN/);
});
