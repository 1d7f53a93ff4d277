/** Guarantees of kinds that remember sources and meter those who come: decision 0100. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from './catalogue.ts';
import { sharedMemory } from './source-memory.ts';

test('a memory has room for all whom the limit on newcomers to one destination lets through in its time', () => {
  let held = 0;
  for (const { name, enforcement, limits } of filterKinds) {
    if (!limits.includes(sharedMemory)) continue;
    const newcomers = enforcement?.meters.find((meter) => meter.name === 'openings');
    if (newcomers === undefined || enforcement?.remembers === undefined) continue;
    const { seconds, ...room } = enforcement.remembers;
    const places = 'sources' in room ? room.sources : room.flows;
    assert.equal(newcomers.of, 'destination', name);
    const most = newcomers.packetsPerSecond * seconds + newcomers.burst;
    assert.ok(most <= places, `${name}: ${most} newcomers, ${places} places`);
    held += 1;
  }
  assert.ok(held >= 5, `${held} kinds`);
});
