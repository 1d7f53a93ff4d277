/**
 * Says what the routers would do to a packet. Every rule in force that covers the destination takes part, whoever
 * owns it, because the kernel evaluates them all; the caller sees the contents of those that it may read.
 */
import { type Explanation, explain } from '@levee/core/firewall/explain.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { holds } from './own-space.ts';
import { mayRead } from './read-rules.ts';

const coveringStatement = {
  name: 'rules_covering',
  text: `select uuid::text as uuid, sequence, owner_uuid::text as owner_uuid, provider_uuid::text as provider_uuid, fields
    from firewall_rule where dst >>= $1::cidr and deletion_marked_at is null`,
};

interface CoveringRow {
  readonly uuid: string;
  readonly sequence: number;
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly fields: unknown;
}

export async function explainPacket(executor: Executor, caller: Caller, packet: Packet): Promise<Outcome<Explanation>> {
  const dst = formatAddress({ family: packet.family, value: packet.destination });
  if (!(await holds(executor, caller, dst))) {
    return refuse('ip_not_allowed', {
      field: '/dst',
      code: 'ip_not_allowed',
      message: `dst: ${dst} is not within the caller's addresses`,
    });
  }
  const rows = await executor.rows<CoveringRow>(coveringStatement, [dst]);
  const readable = new Set<Rule>();
  const rules = rows.map((row) => {
    const parsed = parseRule(row.fields, { uuid: row.uuid, sequence: row.sequence });
    if (!parsed.ok) throw new Error(`rule ${row.uuid} is stored with fields that do not parse`);
    if (mayRead(caller, row)) readable.add(parsed.rule);
    return parsed.rule;
  });
  return done(explain(rules, packet, (rule) => readable.has(rule)));
}
