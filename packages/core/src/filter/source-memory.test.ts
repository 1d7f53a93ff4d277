/** Guarantees of kinds that remember sources and meter those who come: decision 0100. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from './catalogue.ts';
import { learningMeter, mostLearned, settlingMeter } from './settling-meter.ts';

/** Meters of a destination behind which a source is remembered. */
const newcomersOf = (kind: string): readonly string[] =>
  kind === 'source-engine' ? ['openings', 'queries'] : ['openings'];

test('a memory has room for all whom the limit on newcomers to one destination lets through in its time', () => {
  const held: string[] = [];
  for (const { name, enforcement } of filterKinds) {
    const newcomers = enforcement.meters.filter((meter) => newcomersOf(name).includes(meter.name));
    if (newcomers.length === 0 || enforcement.remembers === undefined) continue;
    const { seconds, ...room } = enforcement.remembers;
    const places = 'sources' in room ? room.sources : room.flows;
    let most = enforcement.meters.includes(learningMeter) ? mostLearned : 0;
    for (const { of, packetsPerSecond, burst } of newcomers) {
      assert.equal(of, 'destination', name);
      most += packetsPerSecond * seconds + burst;
    }
    assert.ok(most <= places, `${name}: ${most} newcomers, ${places} places`);
    held.push(name);
  }
  for (const name of ['quic', 'web', 'source-engine', 'dtls']) assert.ok(held.includes(name), held.join());
});

test('a packet that makes its source known while a filter settles is counted by the meter of those alone', () => {
  for (const { name, enforcement } of filterKinds) {
    if (!enforcement.settles) continue;
    const { meters, remembers, tracking } = enforcement;
    const remembersByForm = remembers !== undefined && tracking !== 'flows';
    assert.equal(meters.includes(learningMeter), remembersByForm, name);
    assert.ok(remembersByForm || meters.includes(settlingMeter), `${name} passes without a bound while it settles`);
  }
});
