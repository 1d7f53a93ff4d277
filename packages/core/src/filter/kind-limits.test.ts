import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from './catalogue.ts';
import { limitsOf } from './kind-limits.ts';

test('every kind says of itself what holds of all that bound or remember sources', () => {
  for (const kind of filterKinds) {
    const { enforcement, families, limits, name } = kind;
    const said = limitsOf(kind);
    assert.deepEqual(said.slice(0, limits.length), limits);
    const more = said.slice(limits.length).join(' ');
    const bounds = enforcement.meters.some(({ of }) => of === 'source');
    const remembers = enforcement.remembers !== undefined && 'sources' in enforcement.remembers;
    const counts6 = bounds && families.includes(6);
    assert.equal(more.includes('An IPv6 source is a /64'), counts6, name);
    assert.equal(more.includes('65,535 sources'), bounds, name);
    assert.equal(more.includes('is open to all of them'), counts6 && remembers, name);
  }
});
