/**
 * How events read the objects that they tell of: the rows of a kind by their uuids, rendered as any read answers them.
 * Whose objects they are is not asked here: an event is shown to whoever may see it.
 */
import { filterNeed } from '@levee/core/filter/need.ts';
import type pg from 'pg';
import { type AttackRow, attackColumns } from '../commands/attack-row.ts';
import { executorOf } from '../commands/executor.ts';
import { type FilterRow, filterColumns, filterHits } from '../commands/filter-row.ts';
import { type FlowruleRow, flowruleColumns } from '../commands/flowrule-row.ts';
import { type RdnsRow, rdnsColumns } from '../commands/rdns-row.ts';
import { loadZoneIndex } from '../commands/read-rdns.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from '../commands/rule-row.ts';
import { endsJoin, type TunnelRow, tunnelColumns } from '../commands/tunnel-row.ts';
import { type Renderers, type RenderedObject as ToldObject, tableOf } from '../events/objects.ts';
import { renderAttack } from './attack-answer.ts';
import { renderFilter } from './filter-answer.ts';
import { renderFlowrule } from './flowrule-answer.ts';
import type { AppliedStates, RenderedObject } from './object-answer.ts';
import { renderRdns } from './rdns-answer.ts';
import { renderRule } from './rule-answer.ts';
import { renderTunnel, tunnelScope } from './tunnel-answer.ts';

export interface EventObjectServices {
  readonly pool: Pick<pg.Pool, 'query'>;
  readonly states: AppliedStates;
  /** Whether a BGP speaker is configured. */
  readonly hasSpeaker: boolean;
}

interface AnyRow {
  readonly uuid: string;
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly change_xid: number;
  readonly change_position: number;
}

export function eventRenderers({ pool, states, hasSpeaker }: EventObjectServices): Renderers {
  async function load<Row extends AnyRow>(
    kind: keyof typeof tableOf,
    columns: string,
    uuids: readonly string[],
    join = '',
  ): Promise<Row[]> {
    const { rows } = await pool.query<Row>({
      name: `event_objects_${kind}`,
      text: `select ${columns} from ${tableOf[kind]} r ${join} where r.uuid = any($1::uuid[])`,
      values: [uuids],
    });
    return rows;
  }
  const ruleParts = `${ruleColumns}, ${hitColumns}`;
  return {
    firewall_rule: async (uuids) =>
      (await load<RuleRow>('firewall_rule', ruleParts, uuids, hitsJoin)).map((row) =>
        told(row, renderRule(row, states)),
      ),
    filter: async (uuids) =>
      (await load<FilterRow>('filter', filterColumns, uuids, filterHits)).map((row) => ({
        ...told(row, renderFilter(row, states)),
        scope: { needs: filterNeed(row.kind) },
      })),
    tunnel: async (uuids) =>
      (await load<TunnelRow>('tunnel', tunnelColumns, uuids, endsJoin)).map((row) => ({
        ...told(row, renderTunnel(row, states)),
        scope: tunnelScope(row),
      })),
    rdns: async (uuids) => {
      const [rows, zones] = await Promise.all([
        load<RdnsRow>('rdns', rdnsColumns, uuids),
        loadZoneIndex(executorOf(pool)),
      ]);
      return rows.map((row) => {
        const rendered = renderRdns(row, zones);
        return { ...told(row, rendered), isShared: rendered.state === 'failed' && row.failure === null };
      });
    },
    flowrule: async (uuids) =>
      (await load<FlowruleRow>('flowrule', flowruleColumns, uuids)).map((row) =>
        told(row, renderFlowrule(row, hasSpeaker)),
      ),
    attack: async (uuids) =>
      (await load<AttackRow & AnyRow>('attack', attackColumns, uuids)).map((row) => told(row, renderAttack(row))),
  };
}

function told(row: AnyRow, { state, text }: RenderedObject): ToldObject {
  const change = { xid: row.change_xid, position: row.change_position };
  return { uuid: row.uuid, ownerUuid: row.owner_uuid, providerUuid: row.provider_uuid, change, state, text };
}
