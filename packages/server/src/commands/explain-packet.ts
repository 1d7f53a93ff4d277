/**
 * Says what the routers would do to a packet. Every rule and filter in force that covers the destination takes part, whoever
 * owns it, because the kernel evaluates them all; the caller sees the contents of those that it may read.
 */
import { filterKind } from '@levee/core/filter/catalogue.ts';
import type { Entry } from '@levee/core/filter/entry.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { type Explanation, explain } from '@levee/core/firewall/explain.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { parseStoredRule } from '@levee/core/firewall/parse.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { subnetText } from '../store/subnet-text.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { holds } from './own-space.ts';
import { mayRead } from './read-rules.ts';

/** One statement, so that rules and filters are of one moment. */
const coveringStatement = {
  name: 'entries_covering',
  text: `select 'rule' as what, uuid::text as uuid, sequence, owner_uuid::text as owner_uuid,
      provider_uuid::text as provider_uuid, fields, attack_uuid::text as attack_uuid,
      (select ${subnetText('a.dst')} from attack a where a.uuid = attack_uuid) as attack_dst
    from firewall_rule where dst >>= $1::cidr and deletion_marked_at is null
    union all
    select 'filter', uuid::text, sequence, owner_uuid::text, provider_uuid::text, fields, null, null
    from filter where dst >>= $1::cidr and deletion_marked_at is null`,
};

export interface CoveringRow {
  readonly what: 'rule' | 'filter';
  readonly uuid: string;
  readonly sequence: number;
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly fields: unknown;
  /** Of a measure against an attack. */
  readonly attack_uuid?: string | null;
  readonly attack_dst?: string | null;
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
  const readable = new Set<Entry>();
  const entries = rows.flatMap((row) => {
    const entry = parseCovering(row);
    if (entry && mayRead(caller, row)) readable.add(entry);
    return entry ?? [];
  });
  return done(explain(entries, packet, (entry) => readable.has(entry)));
}

/** Undefined: a filter of a kind that a newer release knows. Nothing here enforces it. */
export function parseCovering({
  what,
  uuid,
  sequence,
  fields,
  attack_uuid,
  attack_dst,
}: CoveringRow): Entry | undefined {
  if (what === 'rule') {
    const parsed = parseStoredRule(fields, { uuid, sequence });
    const measure = { ...(attack_uuid && { attackUuid: attack_uuid }), ...(attack_dst && { attackDst: attack_dst }) };
    if (parsed.ok) return { ...parsed.rule, ...measure };
  } else {
    const parsed = parseFilter(fields, { uuid, sequence });
    if (parsed.ok) return parsed.filter;
    const { filter } = fields as { readonly filter: number };
    if (filterKind(filter) === undefined) return undefined;
  }
  throw new Error(`${what} ${uuid} is stored with fields that do not parse`);
}
