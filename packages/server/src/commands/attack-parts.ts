/**
 * Records what of an attack on a subnet goes to addresses of others than whom the attack belongs to: for each of those holders
 * an attack of its own, with its share alone, as long as the whole lasts (decision 0153). Follows the whole; mitigates nothing.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { destinationsOf, type HeldSubnet, type OwnPart, partOf } from '@levee/core/attack/own-part.ts';
import type { PlacedAttack } from '@levee/core/attack/placement.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { type CountedTotals, saveEvidence } from './attack-evidence.ts';
import type { AttackRow } from './attack-row.ts';
import { addSample } from './attack-samples.ts';
import type { Executor } from './executor.ts';
import { type KnownAttackRow, loadParts } from './known-attacks.ts';
import { milliseconds } from './stored-row.ts';
import { changeAttack, createAttack, noteReport } from './write-attack.ts';

/** What lies inside the subnet; whoever holds all of it has the whole. */
const holdersStatement = {
  name: 'attack_part_holders',
  text: `select s.account_uuid::text as owner_uuid, s.provider_uuid::text, s.subnet::text,
      ${milliseconds('s.created_at')} as since_ms
    from subnet s
    where s.role = 'user' and s.subnet << $1::cidr and s.account_uuid <> $2
      and s.subnet in (select u.subnet from unnest($3::cidr[]) d join subnet u on u.role = 'user' and u.subnet >>= d)
    order by s.account_uuid, s.subnet for key share`,
};

interface HolderRow {
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly subnet: string;
  readonly since_ms: number;
}

const stillStatement = {
  name: 'attack_part_still_held',
  text: `select distinct account_uuid::text as uuid from subnet where subnet && $1::cidr and account_uuid = any($2::uuid[])`,
};

const mitigationStatement = { name: 'attack_part_mitigation', text: 'select mitigation from attack where uuid = $1' };

interface Holder {
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly part: OwnPart;
  readonly sinceMs: number;
}

export interface ReportedWhole {
  /** As the report left it. */
  readonly row: AttackRow;
  /** The report is the first of it. */
  readonly isNew: boolean;
  /** What the report counts beyond those before. */
  readonly counted: CountedTotals;
}

/** In the report's transaction, after the measures. Told again it changes nothing. */
export async function saveParts(
  executor: Executor,
  whole: ReportedWhole,
  detected: DetectedAttack,
  now: Date,
): Promise<void> {
  const { row, isNew, counted } = whole;
  if (!row.dst.includes('/')) return;
  const holders = await findHolders(executor, row, detected);
  const known = await loadParts(executor, row.uuid);
  if (holders.length === 0 && known.length === 0) return;
  const [present] = await executor.rows<Pick<AttackRow, 'mitigation'>>(mitigationStatement, [row.uuid]);
  const { mitigation } = present ?? row;
  for (const { owner_uuid, provider_uuid, part, sinceMs } of holders) {
    const before = known.find((each) => each.owner_uuid === owner_uuid);
    const { measured, vectors, share } = part;
    const at = Math.min(measured.at_ms, now.getTime());
    const placed: PlacedAttack = {
      uuid: before?.uuid,
      continues: undefined,
      startedMs: before?.started_ms ?? Math.max(isNew ? row.started_ms : at, Math.min(sinceMs, now.getTime())),
      startTold: true,
      newsMs: Math.max(before?.news_ms ?? at, at),
      ...endOf(row, before?.started_ms),
    };
    const figures = {
      vectors: [...new Set([...(before?.vectors ?? []), ...vectors])],
      peak_pps: Math.max(before?.peak_pps ?? 0, Math.round(measured.pps)),
      peak_bps: Math.max(before?.peak_bps ?? 0, Math.round(measured.bps)),
      mitigation,
      details: {},
    };
    const names = { owner_uuid, provider_uuid, dst: row.dst, source: row.source, external_id: null, part_of: row.uuid };
    const written =
      before === undefined
        ? await createAttack(executor, names, placed, figures)
        : ((await changeAttack(executor, before, placed, figures, true)) ??
          (await noteReport(executor, before, placed, now)));
    const { pps, bps } = measured;
    await addSample(executor, written.uuid, { at: new Date(at), pps: Math.round(pps), bps: Math.round(bps) }, true);
    await saveEvidence(executor, written.uuid, part, {
      packets: counted.packets * share.packets,
      bytes: counted.bytes * share.bytes,
      sampled: counted.sampled * share.packets,
    });
  }
  const active = new Set(holders.map(({ owner_uuid }) => owner_uuid));
  await followWhole(
    executor,
    row,
    known.filter(({ owner_uuid }) => !active.has(owner_uuid)),
    mitigation,
  );
}

/** An attack that a report says has ended, of which it tells no more. */
export async function endParts(executor: Executor, whole: AttackRow): Promise<void> {
  if (!whole.dst.includes('/')) return;
  await followWhole(executor, whole, await loadParts(executor, whole.uuid), whole.mitigation);
}

async function findHolders(executor: Executor, row: AttackRow, detected: DetectedAttack): Promise<readonly Holder[]> {
  const destinations = destinationsOf(detected);
  if (destinations.length === 0) return [];
  const rows = await executor.rows<HolderRow>(holdersStatement, [row.dst, row.owner_uuid, destinations]);
  return [...Map.groupBy(rows, ({ owner_uuid }) => owner_uuid)].flatMap(([owner_uuid, held]) => {
    const subnets = held.map(
      ({ subnet, since_ms }): HeldSubnet => ({ prefix: prefixFromTrusted(subnet), sinceMs: since_ms }),
    );
    const part = partOf(detected, subnets);
    if (part === undefined) return [];
    const sinceMs = Math.min(...held.map(({ since_ms }) => since_ms));
    return [{ owner_uuid, provider_uuid: held[0]?.provider_uuid ?? '', part, sinceMs }];
  });
}

/** Those that this report has nothing of: they end with the whole, or with the last address of theirs in it. */
async function followWhole(
  executor: Executor,
  whole: AttackRow,
  parts: readonly KnownAttackRow[],
  mitigation: AttackRow['mitigation'],
): Promise<void> {
  if (parts.length === 0) return;
  const owners = parts.map(({ owner_uuid }) => owner_uuid);
  const holding = await executor.rows<{ uuid: string }>(stillStatement, [whole.dst, owners]);
  const still = new Set(holding.map(({ uuid }) => uuid));
  for (const part of parts) {
    // Long ended for its holder: what goes on is elsewhere, until a report tells of it again.
    if (part.end_reason === 'silent') continue;
    const news = Math.max(part.started_ms, part.news_ms ?? part.started_ms);
    const end = still.has(part.owner_uuid)
      ? endOf(whole, part.started_ms)
      : ({ endedMs: news, endReason: 'holder_changed' } as const);
    const placed: PlacedAttack = {
      uuid: part.uuid,
      continues: undefined,
      startedMs: part.started_ms,
      startTold: true,
      newsMs: part.news_ms ?? undefined,
      ...end,
    };
    await changeAttack(executor, part, placed, { ...part, mitigation }, false);
  }
}

function endOf({ ended_ms, end_reason }: AttackRow, startedMs: number | undefined) {
  if (ended_ms === null) return { endedMs: undefined, endReason: undefined };
  return { endedMs: Math.max(ended_ms, startedMs ?? 0), endReason: end_reason ?? undefined };
}
