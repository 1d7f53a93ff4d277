/** Measures for tests: no operation makes them, so they come by the command that detectors' reports use. Test code only. */
import assert from 'node:assert/strict';
import { transact } from '../../commands/executor.ts';
import { recordDetectedAttack } from '../../commands/record-detected-attack.ts';
import { detectedAttack } from '../../commands/testing/detected.ts';
import type { ApiFixture } from './api-fixture.ts';

export interface Mitigated {
  readonly attack: string;
  readonly rule: string;
  readonly flowrule: string;
}

/** An attack with its measures up to the edge: the flowrules are proposed. On a destination that no other test uses. */
export async function mitigated(api: ApiFixture, dst: string): Promise<Mitigated> {
  const { pool } = api.database;
  const known = await pool.query('select from detection_policy where subnet = $1::cidr', [dst]);
  if (known.rowCount === 0) {
    const body = { scope: dst, mitigation: 'edge' };
    const reply = await api.call('createDetectionPolicy', {}, { key: api.operatorKey, body });
    assert.equal(reply.status, 200, reply.text);
  }
  const detected = detectedAttack(dst, Date.now() - 1000);
  const outcome = await transact(pool, (executor) => recordDetectedAttack(executor, detected, new Date()));
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  const attack = outcome.value.uuid;
  const one = async (table: string) => {
    const text = `select uuid::text from ${table} where attack_uuid = $1 and deletion_marked_at is null order by sequence limit 1`;
    const [row] = (await pool.query<{ uuid: string }>(text, [attack])).rows;
    assert.ok(row !== undefined, `no ${table} came of the attack`);
    return row.uuid;
  };
  return { attack, rule: await one('firewall_rule'), flowrule: await one('flowrule') };
}
