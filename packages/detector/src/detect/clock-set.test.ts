/** Guarantees of detection when the machine's clock is set, and when not all was seen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { policy, Rig, slotReport } from './testing/rig.ts';

const dst = '203.0.113.7';
const policies = [policy({ 'udp-other': { pps: 50_000 }, total: { pps: 1_000_000 } }, { hold_s: 10 })];
const usual = [{ dst: '203.0.113.8', vector: 'udp-other', pps: 20_000 }] as const;
const flood = [...usual, { dst, vector: 'udp-other', pps: 100_000 }] as const;

for (const hours of [1, -1]) {
  test(`a clock that is set by ${hours} h neither begins nor ends an attack, and its end is by the new one`, () => {
    const rig = new Rig({ policies, sampling: 100, collectors: ['a', 'b'] });
    rig.run(5, usual);
    rig.setClock(hours * 3_600_000);
    rig.run(5, usual);
    assert.equal(rig.attacks.length, 0);
    rig.run(5, flood);
    rig.setClock(-hours * 3_600_000);
    rig.run(15, flood);
    rig.setClock(hours * 3_600_000);
    rig.run(5, flood);
    assert.deepEqual(rig.found(), [`${dst} udp-other`]);
    assert.deepEqual(rig.phases('ended'), []);
    const overMs = rig.slotMs;
    rig.run(14, usual);
    const [ended] = rig.phases('ended');
    assert.equal(rig.found().length, 1);
    assert.ok(Math.abs((ended?.ended_ms ?? 0) - overMs) <= 500, `${(ended?.ended_ms ?? 0) - overMs} ms`);
    const peak = Math.max(...rig.attacks.map(({ measured }) => measured.pps));
    assert.ok(peak < 130_000, `a peak of ${peak}`);
  });
}

test('of slots that a collector has not seen wholly no attack ends', () => {
  const rig = new Rig({ policies, sampling: 100 });
  rig.run(5, flood);
  assert.equal(rig.found().length, 1);
  for (let slot = 0; slot < 80; slot++) {
    rig.passTo(rig.slotMs + 270);
    rig.hear({ ...slotReport('a', 1_000 + slot, rig.slotMs, []), isPartial: true });
    rig.advance(250);
  }
  assert.deepEqual(rig.phases('ended'), []);
  rig.run(9);
  assert.deepEqual(rig.phases('ended'), []);
  rig.run(2);
  assert.equal(rig.phases('ended').length, 1);
});
