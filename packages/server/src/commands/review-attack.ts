/**
 * Looks at the measures of an attack again without a report, by what was told of it last: there is another policy, another
 * holder, or nothing was seen of a vector in time. Owns that an attack goes on as the present holder's. Detects nothing.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { announcesRoutes } from '@levee/core/mitigation/decide.ts';
import { copyEvidence, noteDecision } from './attack-evidence.ts';
import { type AttackDetails, type AttackRow, attackColumns } from './attack-row.ts';
import type { Executor } from './executor.ts';
import { findHolder, takeTurn } from './known-attacks.ts';
import { type MitigationSettings, mitigateAttack } from './mitigate-attack.ts';
import { done, type Outcome } from './outcome.ts';
import { recordAttack } from './record-attack.ts';
import { loadStandingMeasures } from './standing-measures.ts';
import { weakestPolicy } from './weakest-policy.ts';
import { removeMeasures } from './write-measures.ts';

/** What was told of it last; null: nothing that measures are decided by. */
interface ReviewedRow extends AttackRow {
  readonly details: AttackDetails;
  readonly profile: DetectedAttack['profile'] | null;
  readonly measured_at: Date | null;
}

const reviewedStatement = {
  name: 'review_attack',
  text: `select ${attackColumns}, r.details, e.profile, e.measured_at
    from attack r left join attack_evidence e on e.attack_uuid = r.uuid where r.uuid = $1 for update of r`,
};

export interface ReviewedAttack {
  readonly uuid: string;
  readonly source: string;
  readonly external_id: string;
  readonly dst: string;
  /** Its vectors of which nothing was seen are not waited for any longer. */
  readonly isOver: boolean;
}

/** In a transaction. Looked at again, it changes nothing. */
export async function reviewAttack(
  executor: Executor,
  reviewed: ReviewedAttack,
  now: Date,
  settings: MitigationSettings,
): Promise<Outcome<undefined>> {
  const { uuid, source, external_id: externalId, dst, isOver } = reviewed;
  await takeTurn(executor, { source, externalId, dst });
  const [row] = await executor.rows<ReviewedRow>(reviewedStatement, [uuid]);
  if (row === undefined) return done(undefined);
  if (row.ended_ms !== null) {
    await takeBack(executor, row);
    return done(undefined);
  }
  const { profile, measured_at: reportedAt } = row;
  if (profile === null || reportedAt === null) return done(undefined);
  const part = await presentPart(executor, row, now);
  if (part === undefined) return done(undefined);
  const review = { reportedAt: reportedAt < now ? reportedAt : now, isOver };
  await mitigateAttack(executor, part, { phase: 'changed', profile }, now, settings, review);
  await noteDecision(executor, part.uuid);
  return done(undefined);
}

/** What goes on of it: the present holder's part, which begins now where there is none. Undefined: nobody holds it. */
async function presentPart(executor: Executor, row: ReviewedRow, now: Date): Promise<AttackRow | undefined> {
  const { dst, source, external_id, owner_uuid, vectors, details } = row;
  const holder = await findHolder(executor, dst);
  if (holder === undefined || holder.owner_uuid === owner_uuid) return holder && row;
  // The database's clock said when it was handed over; this process's may be behind.
  const at = new Date(Math.max(now.getTime(), holder.since_ms + 1));
  const { threshold } = details;
  const recorded = await recordAttack(executor, {
    source,
    externalId: external_id ?? undefined,
    dst,
    phase: 'changed',
    measuredAt: at,
    now: at,
    vectors,
    details: { ...(threshold && { threshold }) },
  });
  if (!recorded.ok) return undefined;
  const part = recorded.value.row;
  if (part.uuid !== row.uuid) await copyEvidence(executor, row.uuid, part.uuid);
  return part;
}

/** Of an attack that is over, what is only kept for its coming back: no longer than every policy lets it where it stands. */
async function takeBack(executor: Executor, attack: AttackRow): Promise<void> {
  const { routes, rules } = await loadStandingMeasures(executor, attack);
  const own = routes.filter(({ isOwn, released, held }) => isOwn && !released && held === null);
  for (const dst of new Set([...own, ...rules].map(({ canonical }) => canonical.dst))) {
    const policy = await weakestPolicy(executor, dst);
    const goes = ({ canonical: { dst: place, action } }: (typeof own)[number]) =>
      place === dst && (!announcesRoutes(policy) || (action === 'blackhole' && !policy.allowBlackhole));
    const uuids = (rows: readonly { readonly uuid: string }[]) => rows.map(({ uuid }) => uuid);
    await removeMeasures(executor, 'flowrule', uuids(own.filter(goes)));
    if (policy.mitigation !== 'observe') continue;
    await removeMeasures(executor, 'firewall_rule', uuids(rules.filter(({ canonical }) => canonical.dst === dst)));
  }
}
