/**
 * Has measures looked at again where something other than the attack has changed: policies, holders, or that a vector was
 * waited for long enough. What is due stands in `mitigation_review`, written by whoever changed it (0019_mitigation.sql); what
 * becomes of it is commands/review-attack.ts' to know. So the operator's word counts though no detector lives.
 */
import type pg from 'pg';
import { transact } from '../commands/executor.ts';
import type { MitigationSettings } from '../commands/mitigate-attack.ts';
import { type ReviewedAttack, reviewAttack } from '../commands/review-attack.ts';
import { isRetryable, isUnanswered, isUnavailable } from '../store/failure.ts';
import { subnetText } from '../store/subnet-text.ts';

/** Rows at once: a provider's prefixes may have been given in one go. */
const BATCH = 10_000;

const DUE = `select coalesce(array_agg(sequence::text), '{}') as due from (
    select sequence from mitigation_review where due_at <= now() order by due_at limit ${BATCH}) r`;

/** Also those that are over while something of theirs still stands. Attacks of others' telling have no measures. */
const ATTACKS = `select a.uuid::text as uuid, a.source, a.external_id, ${subnetText('a.dst')} as dst,
      bool_or(r.attack_uuid is not null) as "isOver"
    from mitigation_review r join attack a on case
      when r.attack_uuid is not null then a.uuid = r.attack_uuid else r.dst is null or a.dst && r.dst end
    where r.sequence = any($1::int8[]) and a.source = 'levee' and a.external_id is not null and (a.ended_at is null
      or a.uuid in (select attack_uuid from flowrule where origin = 'attack' and deletion_marked_at is null
        union select attack_uuid from firewall_rule where origin = 'attack' and deletion_marked_at is null))
    group by a.uuid, a.sequence order by a.sequence`;

const REVIEWED = 'delete from mitigation_review where sequence = any($1::int8[])';

/** The first moment at which something is due; null: nothing will be. */
export const EARLIEST_REVIEW = '(select min(due_at) from mitigation_review)';

/** Returns how many attacks were looked at. One whose measures cannot be decided keeps them, and holds no other up. */
export async function reviewMeasures(pool: pg.Pool, settings: MitigationSettings): Promise<number> {
  let reviewed = 0;
  for (;;) {
    const { rows } = await pool.query<{ due: string[] }>({ name: 'sweep_review_due', text: DUE });
    const due = rows[0]?.due ?? [];
    if (due.length === 0) return reviewed;
    const attacks = await pool.query<ReviewedAttack>({ name: 'sweep_review_attacks', text: ATTACKS, values: [due] });
    for (const attack of attacks.rows) {
      try {
        await transact(pool, (executor) => reviewAttack(executor, attack, new Date(), settings));
      } catch (error) {
        if (isUnavailable(error) || isRetryable(error) || isUnanswered(error)) throw error;
        settings.logError?.(error, `measures against attack ${attack.uuid} cannot be looked at again`);
      }
      reviewed++;
    }
    await pool.query({ name: 'sweep_reviewed', text: REVIEWED, values: [due] });
    if (due.length < BATCH) return reviewed;
  }
}
