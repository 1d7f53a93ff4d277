/** Guarantees of the server on real sockets, asked by dig and by clients that dig cannot be. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { startDnsServer } from './dns-server.ts';
import { type MemoryZones, memoryZones, zoneSettings } from './testing/memory-zones.ts';
import { queryOctets, readAnswer } from './testing/messages.ts';
import { mutatedQuery, numbersFrom } from './testing/mutated-queries.ts';
import { dig, digShort, digStatus, missingPrograms } from './testing/programs.ts';
import { framed, serve, tcpClient, udpClient } from './testing/test-server.ts';
import type { ZoneRecord, ZoneSettings } from './zone-source.ts';

const four = '113.0.203.in-addr.arpa';
const six = '8.b.d.0.1.0.0.2.ip6.arpa';
const mail: ZoneRecord = [`7.${four}`, 'mail.example.net'];
const query = queryOctets({ name: `7.${four}` });

function oneZone(more: Partial<ZoneSettings> = {}, records: Iterable<ZoneRecord> = [mail]): MemoryZones {
  const zones = memoryZones();
  zones.put(zoneSettings(four, more), records);
  return zones;
}

const manyServers = Array.from({ length: 60 }, (_, index) => `${'n'.repeat(50)}.${index}.example.net`);

describe('dig', { skip: missingPrograms('bind9-dnsutils', 'bind9-utils') }, () => {
  test('is answered over UDP and TCP, on each address, and at once as the zones change', async (t) => {
    const zones = oneZone();
    const settings = zoneSettings(six);
    zones.put(settings, [[`7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.${six}`, 'six.example.net']]);
    const listen = [
      { host: '127.0.0.1', port: 0 },
      { host: '::1', port: 0 },
    ];
    const server = await serve(t, zones, { listen });
    assert.equal(server.addresses.length, 2);
    for (const at of server.addresses) {
      assert.deepEqual(await digShort(at, '-x', '203.0.113.7'), ['mail.example.net.']);
      assert.deepEqual(await digShort(at, '+tcp', '-x', '203.0.113.7'), ['mail.example.net.']);
      assert.deepEqual(await digShort(at, '-x', '2001:db8::7'), ['six.example.net.']);
    }
    assert.deepEqual(await digStatus(server.at, '-x', '203.0.113.8'), {
      status: 'NXDOMAIN',
      flags: ['qr', 'aa', 'rd'],
    });
    assert.deepEqual(await digStatus(server.at, 'example.net'), { status: 'REFUSED', flags: ['qr', 'rd'] });
    assert.deepEqual(await digStatus(server.at, 'CH', 'TXT', 'version.bind'), {
      status: 'REFUSED',
      flags: ['qr', 'rd'],
    });
    const changed = zones.change(four, [[`8.${four}`, 'new.example.net']], [`7.${four}`]);
    assert.equal(server.servedSerial(four), changed.serial);
    assert.deepEqual(await digShort(server.at, '-x', '203.0.113.8'), ['new.example.net.']);
    assert.equal((await digStatus(server.at, '-x', '203.0.113.7')).status, 'NXDOMAIN');
    zones.remove(four);
    assert.equal((await digStatus(server.at, '-x', '203.0.113.8')).status, 'REFUSED');
    assert.equal(server.servedSerial(four), undefined);
    assert.equal(server.counters.answers.failed, 0);
  });

  test('comes back over TCP when an answer is too long for what it takes over UDP', async (t) => {
    const server = await serve(t, oneZone({ nameservers: manyServers }));
    for (const size of [['+noedns'], ['+bufsize=700'], ['+bufsize=4096']]) {
      assert.equal((await digShort(server.at, ...size, four, 'NS')).length, 60);
      const cut = await digStatus(server.at, ...size, '+ignore', four, 'NS');
      assert.ok(cut.flags.includes('tc'), size[0]);
    }
    assert.equal(server.counters.truncated, 6);
    assert.deepEqual(server.counters.queries, { udp: 6, tcp: 3 });
  });

  test('sees the version, options and flags of EDNS dealt with as RFC 6891 wants', async (t) => {
    const server = await serve(t, oneZone());
    assert.match(await dig(server.at, '+dnssec', '-x', '203.0.113.7'), /EDNS: version: 0, flags: do; udp: 1232/);
    assert.match(
      await dig(server.at, '+nsid', '+cookie', '+subnet=192.0.2.0/24', '-x', '203.0.113.7'),
      /mail\.example\.net/,
    );
    assert.equal((await digStatus(server.at, '+edns=100', '+noednsneg', '-x', '203.0.113.7')).status, 'BADVERS');
    assert.match(await dig(server.at, '+noedns', '-x', '203.0.113.7'), /ADDITIONAL: 0/);
  });

  test('takes a zone of 50 000 records that named-checkzone loads, but only from a secondary', async (t) => {
    const records = Array.from({ length: 50_000 }, (_, index): ZoneRecord => {
      const nibbles = [...index.toString(16).padStart(24, '0')].reverse().join('.');
      return [`${nibbles}.${six}`, `host-${index}.customers.example.net`];
    });
    const zones = memoryZones();
    zones.put(zoneSettings(six, { secondaries: [{ address: '127.0.0.1', port: 9 }], serial: 4_000_000_000 }), records);
    const server = await serve(t, zones);
    const text = await dig(server.at, '+onesoa', six, 'AXFR');
    assert.equal(text.match(/\sPTR\s/g)?.length, 50_000);
    const folder = mkdtempSync(join(tmpdir(), `levee-dns-${process.pid}-`));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'zone'), text);
    const said = execFileSync('named-checkzone', [six, join(folder, 'zone')], { encoding: 'utf8' });
    assert.match(said, /loaded serial 4000000000\nOK/);
    assert.match(await dig(server.at, '-b', '127.0.0.2', six, 'AXFR'), /Transfer failed/);
    assert.deepEqual(server.counters.transfers, { complete: 1, broken: 0 });
    assert.equal(server.secondaries(six)[0]?.transferredSerial, 4_000_000_000);
    assert.match(await dig(server.at, six, 'IXFR=4000000000'), /1 records/);
    assert.match(await dig(server.at, six, 'IXFR=3999999999'), /50004 records/);
  });
});

test('one socket for both families knows an IPv4 secondary as what it is', async (t) => {
  const zones = oneZone({ secondaries: [{ address: '127.0.0.1', port: 9 }] });
  const server = await serve(t, zones, { listen: [{ host: '::', port: 0 }] });
  for (const host of ['127.0.0.1', '::1']) {
    const client = await tcpClient(t, { ...server.at, host }, host);
    client.socket.write(framed(query));
    client.socket.write(framed(queryOctets({ name: four, type: 'AXFR' })));
    await waitUntil(() => client.received.length === 2, 'both answers');
    const [answer, transfer] = client.received.map(readAnswer);
    assert.equal(answer?.answers.length, 1);
    assert.deepEqual([transfer?.code, transfer?.answers.length], host === '::1' ? [5, 0] : [0, 5]);
  }
  const datagrams = await udpClient(t, { ...server.at, host: '127.0.0.1' });
  await datagrams.send(query);
  await waitUntil(() => datagrams.received.length === 1, 'the answer');
});

describe('TCP', () => {
  test('many queries on one connection are answered in their order, however they are cut', async (t) => {
    const server = await serve(t, oneZone());
    const messages = Array.from({ length: 500 }, (_, id) => framed(queryOctets({ name: `7.${four}`, id })));
    const whole = await tcpClient(t, server.at);
    whole.socket.write(Buffer.concat(messages));
    const pieces = await tcpClient(t, server.at);
    pieces.socket.setNoDelay(true);
    for (const octet of Buffer.concat(messages.slice(0, 5))) pieces.socket.write(Buffer.from([octet]));
    await waitUntil(() => whole.received.length === 500 && pieces.received.length === 5, 'all answers');
    assert.deepEqual(
      whole.received.map((octets) => readAnswer(octets).id),
      Array.from(messages.keys()),
    );
    assert.deepEqual(readAnswer(whole.received[0] ?? Buffer.alloc(0)).answers, [`7.${four} 300 PTR mail.example.net`]);
  });

  test('a client that closes its side gets its answers before ours is closed', async (t) => {
    const server = await serve(t, oneZone());
    const client = await tcpClient(t, server.at);
    client.socket.end(Buffer.concat([framed(query), framed(query)]));
    await waitUntil(() => client.isClosed, 'the end');
    assert.equal(client.received.length, 2);
  });

  test('a connection that sends no whole message ends, one that asks stays', async (t) => {
    const tcpLimits = { connections: 10, idleMilliseconds: 300, stalledMilliseconds: 60_000 };
    const server = await serve(t, oneZone(), { tcpLimits });
    const silent = await tcpClient(t, server.at);
    const slow = await tcpClient(t, server.at);
    const busy = await tcpClient(t, server.at);
    const drip = setInterval(() => slow.socket.write(Buffer.from([0])), 20);
    const asking = setInterval(() => busy.socket.write(framed(query)), 20);
    t.after(() => {
      clearInterval(drip);
      clearInterval(asking);
    });
    slow.socket.write(Buffer.from([0xff, 0xff]));
    await waitUntil(() => silent.isClosed && slow.isClosed, 'both to be closed');
    assert.equal(busy.isClosed, false);
    assert.equal(server.counters.connections.idle, 2);
  });

  test('one network with many connections loses its own, not those of others', async (t) => {
    const tcpLimits = { connections: 6, idleMilliseconds: 60_000, stalledMilliseconds: 60_000 };
    const server = await serve(t, oneZone(), { tcpLimits });
    const other = await tcpClient(t, server.at, '127.9.9.9');
    for (let index = 0; index < 20; index += 1) await tcpClient(t, server.at);
    await waitUntil(() => server.counters.connections.accepted === 21, 'all connections');
    assert.equal(server.counters.connections.evicted, 15);
    other.socket.write(framed(query));
    await waitUntil(() => other.received.length === 1, 'the answer');
  });

  test('what is no DNS at all closes the connection', async (t) => {
    const server = await serve(t, oneZone());
    const client = await tcpClient(t, server.at);
    client.socket.write('GET / HTTP/1.1\r\n\r\n');
    client.socket.write(framed(Buffer.alloc(3)));
    const empty = await tcpClient(t, server.at);
    empty.socket.write(framed(Buffer.alloc(0)));
    await waitUntil(() => empty.isClosed, 'the end');
    assert.equal(server.counters.unanswerable, 1);
  });

  test('a client that does not read makes nothing pile up', async (t) => {
    const server = await serve(t, oneZone({ nameservers: manyServers }));
    const client = await tcpClient(t, server.at);
    client.socket.pause();
    const batch = Buffer.concat(Array.from({ length: 200 }, () => framed(queryOctets({ name: four, type: 'NS' }))));
    const before = process.memoryUsage().arrayBuffers;
    for (let index = 0; index < 100; index += 1) client.socket.write(batch);
    // 20 000 answers are 70 MB; what the system takes is a few.
    let last = -1;
    await waitUntil(async () => {
      const stands = last === server.counters.queries.tcp;
      last = server.counters.queries.tcp;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return stands && last > 0;
    }, 'the server to stop reading');
    assert.ok(last < 10_000, `${last} were answered`);
    assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024);
  });
});

test('a transfer that is read slowly is of one moment, and is not held in memory', async (t) => {
  const records = Array.from({ length: 60_000 }, (_, index): ZoneRecord => {
    const nibbles = [...index.toString(16).padStart(24, '0')].reverse().join('.');
    return [`${nibbles}.${six}`, `${index.toString(36)}-${'t'.repeat(50)}.${index}.example.net`];
  });
  const zones = memoryZones();
  zones.put(zoneSettings(six, { secondaries: [{ address: '127.0.0.1', port: 9 }] }), records);
  const server = await serve(t, zones);
  const client = await tcpClient(t, server.at);
  const before = process.memoryUsage().arrayBuffers;
  client.socket.pause();
  client.socket.write(framed(queryOctets({ name: six, type: 'AXFR' })));
  await waitUntil(() => server.counters.queries.tcp === 1, 'the query');
  zones.change(
    six,
    [[`1.${six}`, 'later.example.net']],
    records.slice(-1000).map(([owner]) => owner),
  );
  assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 1024 * 1024);
  client.socket.resume();
  await waitUntil(() => server.counters.transfers.complete === 1, 'the transfer', 30_000);
  await waitUntil(() => client.received.at(-1)?.includes(Buffer.from('hostmaster')) === true, 'the last message');
  const all = client.received.flatMap((octets) => readAnswer(octets).answers);
  assert.equal(all.length, 60_000 + 4);
  assert.equal(all[0], all.at(-1));
  assert.equal(
    all.some((line) => line.includes('later.example.net')),
    false,
  );
  assert.equal(server.servedSerial(six), 2);
  assert.equal(server.secondaries(six)[0]?.transferredSerial, 1);
});

test('one network over its limit gets a few answers and hints to come over TCP, another is answered', async (t) => {
  const server = await serve(t, oneZone(), { answersPerSecond: 5 });
  const flood = await udpClient(t, server.at);
  for (let index = 0; index < 100; index += 1) await flood.send(query);
  await waitUntil(() => server.counters.queries.udp === 100, 'all queries');
  const { truncated, dropped } = server.counters.limited;
  assert.ok(truncated >= 40 && Math.abs(truncated - dropped) <= 1, `${truncated} truncated, ${dropped} dropped`);
  await waitUntil(() => flood.received.length === 100 - dropped, 'the answers');
  const read = flood.received.map(readAnswer);
  assert.ok(read.filter(({ flags }) => !flags.tc).length <= 20);
  for (const { flags, length, answers } of read) {
    if (flags.tc) assert.deepEqual([length, answers], [query.length, []]);
  }
  const other = await udpClient(t, server.at, '127.9.9.9');
  await other.send(query);
  await waitUntil(() => other.received.length === 1, 'the answer');
  const byTcp = await tcpClient(t, server.at);
  byTcp.socket.write(framed(query));
  await waitUntil(() => byTcp.received.length === 1, 'the answer over TCP');
});

test('damaged messages on real sockets leave a server that answers', async (t) => {
  const server = await serve(t, oneZone());
  const below = numbersFrom(7);
  const flood = await udpClient(t, server.at);
  for (let index = 0; index < 2_000; index += 1) await flood.send(mutatedQuery(below));
  for (let index = 0; index < 50; index += 1) {
    const client = await tcpClient(t, server.at);
    for (let count = 0; count < 10; count += 1) client.socket.write(framed(mutatedQuery(below)));
    client.socket.write(mutatedQuery(below));
  }
  const after = await udpClient(t, server.at);
  await after.send(query);
  await waitUntil(() => after.received.length === 1, 'an answer');
  assert.equal(server.counters.answers.failed, 0);
  assert.deepEqual(server.warnings, []);
});

describe('start and stop', () => {
  const options = { source: oneZone(), answersPerSecond: 0, warn: () => {}, logError: () => {} };

  test('an address that is taken, unknown or not ours is a message that names it', async (t) => {
    const first = await serve(t, oneZone());
    const cases: [string, number, RegExp][] = [
      ['127.0.0.1', first.at.port, new RegExp(`^cannot serve DNS on 127\\.0\\.0\\.1:${first.at.port}: .*EADDRINUSE`)],
      ['192.0.2.1', 0, /^cannot serve DNS on 192\.0\.2\.1:0: .*EADDRNOTAVAIL/],
      ['nowhere.invalid', 5300, /^cannot serve DNS on nowhere\.invalid: /],
    ];
    for (const [host, port, message] of cases) {
      const started = await startDnsServer({
        ...options,
        listen: [
          { host: '127.0.0.1', port: 0 },
          { host, port },
        ],
      });
      assert.ok(!started.ok);
      assert.match(started.message, message);
    }
  });

  test('a taken UDP port alone is one too, and leaves nothing bound', async (t) => {
    const first = await serve(t, oneZone());
    const { port } = first.at;
    await first.stop();
    const { createSocket } = await import('node:dgram');
    const taken = createSocket('udp4');
    await new Promise<void>((resolve) => taken.bind(port, '127.0.0.1', resolve));
    const listen = [{ host: '127.0.0.1', port }];
    const refused = await startDnsServer({ ...options, listen });
    assert.ok(!refused.ok && /EADDRINUSE/.test(refused.message));
    await new Promise<void>((resolve) => taken.close(() => resolve()));
    const again = await startDnsServer({ ...options, listen });
    assert.ok(again.ok);
    await again.dns.stop();
  });

  test('stopping ends open connections and transfers at once, and twice does no harm', async (t) => {
    const server = await serve(t, oneZone());
    const client = await tcpClient(t, server.at);
    client.socket.write(framed(query));
    await waitUntil(() => client.received.length === 1, 'the answer');
    await Promise.all([server.stop(), server.stop()]);
    await waitUntil(() => client.isClosed, 'the connection to end');
    const again = await startDnsServer({ ...options, listen: [server.at] });
    assert.ok(again.ok);
    await again.dns.stop();
  });

  test('a zone that no message could hold is said and not served, the others are', async (t) => {
    const bad: [Partial<ZoneSettings>, ZoneRecord[]][] = [
      [{ nameservers: [] }, []],
      [{ primary: 'a..b' }, []],
      [{ mailbox: `${'m'.repeat(63)}.${`${'x'.repeat(61)}.`.repeat(3)}example.net` }, []],
      [{ serial: 2 ** 32 }, []],
      [{ ttlSeconds: -1 }, []],
      [{ secondaries: [{ address: 'ns2.example.net', port: 53 }] }, []],
      [{}, [[`7.${four}`, '']]],
      [{}, [[`7.${four}`, 'x'.repeat(64)]]],
      [{}, [[four, 'a.example.net']]],
      [{}, [['7.114.0.203.in-addr.arpa', 'a.example.net']]],
      [{}, [[`A.${four}`, 'a.example.net']]],
    ];
    for (const [settings, records] of bad) {
      const zones = oneZone(settings, records);
      zones.put(zoneSettings(six), []);
      const server = await serve(t, zones);
      const given = JSON.stringify([settings, records]);
      assert.equal(server.servedSerial(four), undefined, given);
      assert.equal(server.servedSerial(six), 1, given);
      assert.match(server.warnings.join(), /^RangeError: /, given);
    }
  });

  test('a change that no message could hold is said, and the zone stays as it was', async (t) => {
    const zones = oneZone();
    const server = await serve(t, zones);
    zones.change(
      four,
      [
        [`8.${four}`, 'good.example.net'],
        [`9.${four}`, 'a..b'],
      ],
      [`7.${four}`],
    );
    assert.equal(server.warnings.length, 1);
    assert.equal(server.servedSerial(four), 1);
    const client = await udpClient(t, server.at);
    for (const octet of [7, 8]) await client.send(queryOctets({ name: `${octet}.${four}`, id: octet }));
    await waitUntil(() => client.received.length === 2, 'two answers');
    const answers = new Map(client.received.map(readAnswer).map(({ id, code }) => [id, code]));
    assert.deepEqual([answers.get(7), answers.get(8)], [0, 3]);
  });
});
