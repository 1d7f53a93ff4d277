import assert from 'node:assert/strict';
import test from 'node:test';
import type { ExporterSettings } from '@levee/contract/detector.ts';
import { ExporterTable, MOST_UNKNOWN } from './exporter-table.ts';

function settings(uuid: string, source: string, more: Partial<ExporterSettings> = {}): ExporterSettings {
  return { uuid, name: uuid, source, sampling: 'auto', ...more };
}

const router = [192 * 2 ** 24 + 1, 0, 0, 0] as const;

test('an exporter is known by its address, with its sampling and interfaces', () => {
  const table = new ExporterTable(() => undefined);
  table.configure([
    settings('a', '192.0.0.1', { sampling: 512, interfaces: [3, 4] }),
    settings('b', '2001:db8::1', { sampling: 'prescaled' }),
    settings('c', '192.0.0.2'),
  ]);
  const a = table.exporterOf(4, ...router, 1000);
  assert.deepEqual([a?.name, a?.fixedScale, [...(a?.interfaces ?? [])]], ['a', 512, [3, 4]]);
  const b = table.exporterOf(6, 0x20010db8, 0, 0, 1, 1000);
  assert.deepEqual([b?.name, b?.fixedScale, b?.interfaces], ['b', 1, undefined]);
  assert.deepEqual(table.exporterOf(4, router[0] + 1, 0, 0, 0, 1000)?.fixedScale, 0);
  assert.equal(table.nameOf(a?.number ?? -1), 'a');
});

test('a source that nobody configured is counted and shown, never an exporter', () => {
  const table = new ExporterTable(() => undefined);
  for (let i = 0; i < 3; i++) assert.equal(table.exporterOf(4, ...router, 5000 + i), undefined);
  table.second();
  assert.deepEqual(
    table.status(() => 0),
    [
      {
        source: '192.0.0.1',
        last_seen_ms: 5002,
        protocols: [],
        datagrams: 3,
        records: 0,
        datagrams_per_second: 0.3,
        records_per_second: 0,
        templates: 0,
        dropped: { unknown_exporter: 3 },
        lost: 0,
      },
    ],
  );
});

test('of forged sources the first thousand are told one by one, the rest together', () => {
  const table = new ExporterTable(() => undefined);
  for (let i = 0; i < 50_000; i++) table.exporterOf(4, 0x01000000 + i, 0, 0, 0, 1000);
  assert.equal(table.status(() => 0).length, MOST_UNKNOWN);
  assert.equal(table.otherUnknownDatagrams, 50_000 - MOST_UNKNOWN);
  table.configure([settings('a', '192.0.0.1')]);
  assert.equal(table.exporterOf(4, ...router, 1000)?.name, 'a', 'an exporter that is configured then is known');
});

test('of forged sources the longest silent gives way to one that comes later, and what it sent is still counted', () => {
  const table = new ExporterTable(() => undefined);
  for (let i = 0; i < MOST_UNKNOWN; i++) table.exporterOf(4, 0x01000000 + i, 0, 0, 0, 1000 + i);
  const shown = (source: string) => table.status(() => 0).some((each) => each.source === source);
  table.exporterOf(4, ...router, 30_000);
  assert.ok(!shown('192.0.0.1'), 'none has been silent for long');
  table.exporterOf(4, 0x01000000, 0, 0, 0, 60_000);
  table.exporterOf(4, ...router, 62_000);
  assert.deepEqual(
    [shown('192.0.0.1'), shown('1.0.0.0'), shown('1.0.0.1'), shown('1.0.0.2')],
    [true, true, false, true],
  );
  assert.equal(table.status(() => 0).length, MOST_UNKNOWN);
  const counted = table.status(() => 0).reduce((sum, { datagrams }) => sum + datagrams, table.otherUnknownDatagrams);
  assert.equal(counted, MOST_UNKNOWN + 3);
  // A clock that was set back by a week: whoever sends then is told within a minute.
  for (let ms = 0; ms <= 62_000; ms += 1000) {
    for (let i = 0; i < MOST_UNKNOWN; i++) table.exporterOf(4, 0x01000000 + i, 0, 0, 0, 1e9 + ms);
  }
  table.exporterOf(4, 0x02000000, 0, 0, 0, 1000);
  for (let i = 5; i < MOST_UNKNOWN; i++) table.exporterOf(4, 0x01000000 + i, 0, 0, 0, 1000);
  table.exporterOf(4, 0x02000000, 0, 0, 0, 62_000);
  assert.ok(shown('2.0.0.0'));
});

test('the longest flow of an exporter is told where it is longer than a minute allows', () => {
  const table = new ExporterTable(() => undefined);
  table.configure([settings('a', '192.0.0.1')]);
  const exporter = table.exporterOf(4, ...router, 1000);
  assert.ok(exporter);
  const told = () => table.status(() => 0)[0]?.longest_flow_s;
  exporter.longestFlowMilliseconds = 61_000;
  assert.equal(told(), undefined);
  exporter.longestFlowMilliseconds = 1_799_500;
  assert.equal(told(), 1800);
  for (let second = 0; second < 3600; second++) table.second();
  assert.equal(told(), 1800);
  for (let second = 0; second < 3600; second++) table.second();
  assert.equal(told(), undefined);
});

test('this machine is an exporter from the start, unless it is configured', () => {
  const table = new ExporterTable(() => undefined);
  assert.equal(table.exporterOf(4, 0x7f000001, 0, 0, 0, 1)?.name, 'local');
  assert.equal(table.exporterOf(6, 0, 0, 0, 1, 1)?.name, 'local');
  table.configure([settings('a', '127.0.0.1', { sampling: 10 })]);
  assert.deepEqual(table.exporterOf(4, 0x7f000001, 0, 0, 0, 1)?.name, 'a');
  assert.equal(table.exporterOf(6, 0, 0, 0, 1, 1)?.name, 'local');
  for (let i = 0; i < 1000; i++) table.exporterOf(4, 0x7f010000 + i, 0, 0, 0, 1);
  assert.ok(table.status(() => 0).length <= 66);
});

test('a change of settings keeps what was counted, and forgets what is gone', () => {
  const forgotten: number[] = [];
  const table = new ExporterTable((number) => forgotten.push(number));
  table.configure([settings('a', '192.0.0.1'), settings('b', '192.0.0.2')]);
  const a = table.exporterOf(4, ...router, 1000);
  const b = table.exporterOf(4, router[0] + 1, 0, 0, 0, 1000);
  table.configure([settings('a', '192.0.0.1', { sampling: 7 })]);
  assert.equal(table.exporterOf(4, ...router, 1000), a);
  assert.equal(a?.fixedScale, 7);
  assert.deepEqual(forgotten, [b?.number]);
  assert.equal(table.exporterOf(4, router[0] + 1, 0, 0, 0, 1000), undefined, 'unknown from now on');
  table.configure([settings('a', '192.0.0.1'), settings('b', '192.0.0.2')]);
  assert.equal(table.exporterOf(4, router[0] + 1, 0, 0, 0, 1000)?.name, 'b', 'and known again');
  assert.deepEqual(table.configure([settings('x', '192.0.0.0/24'), settings('y', 'router')]), [
    '192.0.0.0/24',
    'router',
  ]);
});
