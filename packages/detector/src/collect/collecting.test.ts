import assert from 'node:assert/strict';
import test from 'node:test';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import type { FromCollector } from '../bus/port.ts';
import { fixtures, readDatagrams } from '../decode/testing/datagram-files.ts';
import { Collecting } from './collecting.ts';
import { addReport, expectedRows, type Rows } from './testing/expected-rows.ts';

const start = 1_700_000_000_000;
const everything: DetectorSettings = {
  type: 'settings',
  revision: 1,
  prefixes: ['0.0.0.0/0', '::/0'],
  policies: [],
  exporters: [{ uuid: 'a', name: 'a', source: '192.0.2.1', sampling: 'auto' }],
  ongoing: [],
};

function collecting(settings: DetectorSettings | undefined = everything) {
  const heard: FromCollector[] = [];
  const made = new Collecting({
    collector: 'one',
    sampleOctets: 1 << 20,
    send: (message) => heard.push(message),
    sockets: () => ({ receiveBuffer: { bytes: 1, wanted: 2 }, kernelDrops: 3 }),
  });
  made.tick(start);
  if (settings !== undefined) made.hear({ type: 'settings', settings });
  return { made, heard };
}

const send = (to: Collecting, datagram: Uint8Array, source = 0xc0000201): void =>
  to.datagram(datagram, datagram.length, 4, source, 0, 0, 0, 1);

for (const name of fixtures) {
  test(`the slots of ${name} have exactly what its datagrams told`, () => {
    const datagrams = readDatagrams(name);
    const { rows: expected, records } = expectedRows(datagrams);
    assert.ok(records > 0);
    const { made, heard } = collecting();
    for (const [index, datagram] of datagrams.entries()) {
      made.tick(start + index * 20);
      send(made, datagram);
    }
    const end = start + datagrams.length * 20;
    for (let half = 1; half <= 66; half++) made.tick(end + half * 30_000);
    const rows: Rows = new Map();
    const slots = heard.filter((message) => message.type === 'slot');
    for (const slot of slots) addReport(rows, slot);
    for (const row of rows.values()) if (row.every((value) => value === 0)) assert.fail('a row of nothing');
    const withTraffic = [...expected].filter(([, row]) => row.some((value) => value > 0));
    assert.deepEqual(new Map([...rows].sort()), new Map(withTraffic.sort()));
    assert.deepEqual(
      slots.map(({ sequence }) => sequence),
      [...slots.keys()],
    );
    assert.deepEqual(
      slots.map(({ slotMs }) => slotMs),
      [...slots.keys()].map((i) => start + i * 250),
    );
  });
}

test('a fixed sampling rate stands instead of what records tell, prescaled records count as they are', () => {
  const datagrams = readDatagrams('pmacct_sflow5_s16.first200.dgs');
  for (const [sampling, scale] of [
    ['auto', 0],
    ['prescaled', 1],
    [512, 512],
  ] as const) {
    const { made, heard } = collecting({
      ...everything,
      exporters: [{ uuid: 'a', name: 'a', source: '192.0.2.1', sampling }],
    });
    for (const datagram of datagrams) send(made, datagram);
    made.tick(start + 250);
    const rows: Rows = new Map();
    for (const message of heard) if (message.type === 'slot') addReport(rows, message);
    assert.deepEqual(new Map([...rows].sort()), new Map([...expectedRows(datagrams, scale).rows].sort()));
  }
});

test('only traffic to protected prefixes counts, also when they change', () => {
  const datagrams = readDatagrams('pmacct_sflow5_s16.first200.dgs');
  const { made, heard } = collecting({ ...everything, prefixes: ['203.0.113.0/24'] });
  for (const datagram of datagrams) send(made, datagram);
  made.tick(start + 250);
  made.hear({ type: 'settings', settings: { ...everything, prefixes: ['198.51.100.0/24'] } });
  for (const datagram of datagrams) send(made, datagram);
  made.tick(start + 500);
  const [first, second] = heard
    .filter((message) => message.type === 'slot')
    .map((slot) => {
      const rows: Rows = new Map();
      addReport(rows, slot);
      return rows;
    });
  const all = expectedRows(datagrams).rows;
  const only = (prefix: string) => new Map([...all].filter(([key]) => key.startsWith(prefix)).sort());
  assert.ok(only('203.0.113.').size > 0);
  assert.deepEqual(new Map([...(first ?? [])].sort()), only('203.0.113.'));
  assert.deepEqual(new Map([...(second ?? [])].sort()), only('198.51.100.'));
});

test('datagrams of unknown sources are counted and not read, and read from when they are configured', () => {
  const [datagram = Buffer.alloc(0)] = readDatagrams('pmacct_sflow5_s16.first200.dgs');
  const { made, heard } = collecting();
  const unknown = 0xc0000263;
  for (let i = 0; i < 5; i++) send(made, datagram, unknown);
  made.tick(start + 1250);
  const status = () => heard.filter((message) => message.type === 'status').at(-1);
  assert.deepEqual(
    status()?.exporters.map(({ uuid, source, datagrams, records, dropped }) => [
      uuid,
      source,
      datagrams,
      records,
      dropped,
    ]),
    [[undefined, '192.0.2.99', 5, 0, { unknown_exporter: 5 }]],
  );
  assert.ok(heard.every((message) => message.type !== 'slot' || message.count === 0));
  const exporters = [{ uuid: 'b', name: 'b', source: '192.0.2.99', sampling: 'auto' as const }];
  made.hear({ type: 'settings', settings: { ...everything, exporters } });
  send(made, datagram, unknown);
  made.tick(start + 2500);
  const { records } = expectedRows([datagram]);
  assert.deepEqual(
    status()?.exporters.map(({ uuid, datagrams, records, protocols }) => [uuid, datagrams, records, protocols]),
    [['b', 1, records, ['sflow5']]],
  );
  assert.equal(status()?.exporters[0]?.sampling_rate, 16);
  assert.deepEqual(status()?.receiveBuffer, { bytes: 1, wanted: 2 });
});

test('records of other ingress interfaces than the configured ones are counted apart', () => {
  const datagrams = readDatagrams('ovs_nf5.first200.dgs');
  const { records } = expectedRows(datagrams);
  const { made, heard } = collecting({
    ...everything,
    exporters: [{ uuid: 'a', name: 'a', source: '192.0.2.1', sampling: 'auto', interfaces: [64_999] }],
  });
  for (const datagram of datagrams) send(made, datagram);
  made.tick(start + 1250);
  const status = heard.filter((message) => message.type === 'status').at(-1);
  assert.equal(status?.exporters[0]?.dropped.other_interface, records);
  assert.ok(heard.every((message) => message.type !== 'slot' || message.count === 0));
});

test('a clock that is set back or far ahead ends the slot once, and goes on from there', () => {
  const { made, heard } = collecting();
  made.tick(start + 100);
  made.tick(start - 3_600_000);
  made.tick(start - 3_600_000 + 250);
  const before = heard.filter((message) => message.type === 'slot').length;
  assert.equal(before, 2);
  made.tick(start + 86_400_000);
  const slots = heard.filter((message) => message.type === 'slot');
  assert.ok(slots.length - before <= 241);
  made.tick(start + 86_400_000 + 250);
  assert.equal(heard.filter((message) => message.type === 'slot').at(-1)?.slotMs, start + 86_400_000);
});
