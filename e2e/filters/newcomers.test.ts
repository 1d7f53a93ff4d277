/** What a flood of good packets from forged sources can do to a kind that remembers (decision 0100), in a real kernel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKindNamed } from '@levee/core/filter/catalogue.ts';
import { learningMeter, mostLearned } from '@levee/core/filter/settling-meter.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 4000;

test('a flood of openings from forged sources is held to the limit on newcomers, and known sources go on', {
  skip: labObstacle() ?? false,
}, async () => {
  const kind = filterKindNamed('rtp');
  const limit = kind?.enforcement.meters.find(({ name }) => name === 'openings');
  assert.ok(kind && limit);
  await using path = new FilteredPath('newcomers');
  using strangers = new Strangers(path);
  path.filter(kind.id, { port: { dst: { start: port } } });

  const [media = new Uint8Array()] = junk(1, 172, '8000');
  assert.equal(await strangers.send(port, [media]), 1);
  const began = performance.now();
  const flood = Array.from({ length: 3 * limit.burst }, () => media);
  const arrived = await strangers.send(port, flood, 1000);
  const seconds = (performance.now() - began) / 1000;
  // The one that came first took its place, too.
  const most = limit.burst + limit.packetsPerSecond * seconds;
  assert.ok(arrived >= limit.burst - 1 && arrived <= most, `${arrived} newcomers in ${seconds} s, at most ${most}`);
  assert.ok(arrived < flood.length, 'the flood was larger than what the limit lets through');
  assert.equal(path.discarded(), flood.length - arrived);
  for (let each = 0; each < 100; each++) assert.equal(await strangers.send(port, [media]), 1, 'who is known goes on');
  assert.equal(path.discarded(), flood.length - arrived);
});

test('an attack that runs when a filter is switched on makes few of its sources known', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('learned');
  using strangers = new Strangers(path);
  const flood = junk(3 * mostLearned, 40, '2a');
  for (const [name, payloads] of [
    ['source-engine', flood],
    ['quic', junk(3 * mostLearned, 40, '40')],
  ] as const) {
    const kind = filterKindNamed(name);
    assert.ok(kind);
    path.filter(kind.id, { port: { dst: { start: port } } }, { settling: true });
    const began = performance.now();
    const arrived = await strangers.send(port, payloads);
    const seconds = (performance.now() - began) / 1000;
    const most = learningMeter.burst + learningMeter.packetsPerSecond * Math.min(seconds, 10);
    assert.ok(arrived >= learningMeter.burst - 1 && arrived <= most, `${name}: ${arrived} learned in ${seconds} s`);
    path.settle();
    assert.equal(await strangers.send(port, payloads), arrived, `${name}: who is known goes on, nobody else`);
  }
});
