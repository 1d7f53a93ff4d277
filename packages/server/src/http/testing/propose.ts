/** Flowrules for tests: no operation makes them, so they come by the command that the detector uses. Test code only. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { transact } from '../../commands/executor.ts';
import type { FlowruleRow } from '../../commands/flowrule-row.ts';
import { proposeFlowrule, type WantedFlowrule } from '../../commands/propose-flowrule.ts';

let made = 0;

/** With a port of its own: two flowrules with one match are refused. */
export async function propose(
  pool: pg.Pool,
  dst: string,
  more: Partial<Omit<WantedFlowrule, 'fields'>> & { readonly fields?: object } = {},
): Promise<FlowruleRow> {
  const components = { protocol: 'udp', 'source-port': String(++made) };
  const wanted = { ...more, fields: { dst, components, action: 'discard', ...more.fields } };
  const outcome = await transact(pool, (executor) => proposeFlowrule(executor, wanted));
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return outcome.value;
}
