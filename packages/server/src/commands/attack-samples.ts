/**
 * The timeline of an attack: what was measured, bounded however long it lasts. The newest samples stay as they came; of
 * the older ones every second goes each time that there are too many, so that the past grows coarser. The first one and
 * the highest of each kind stay.
 */
import type { Executor } from './executor.ts';

export interface AttackSample {
  readonly at: Date;
  /** Packets a second. */
  readonly pps: number | undefined;
  /** Bits a second. */
  readonly bps: number | undefined;
}

export const MOST_SAMPLES = 720;
const NEWEST_KEPT = 120;

const addStatement = {
  name: 'attack_sample_add',
  text: `insert into attack_sample (attack_uuid, at, pps, bps)
    select $1, $2, $3::int8, $4::int8
    where $5 or (select (s.pps, s.bps) from attack_sample s where s.attack_uuid = $1 order by s.at desc limit 1)
      is distinct from ($3::int8, $4::int8)
    on conflict do nothing returning 1`,
};

const thinStatement = {
  name: 'attack_sample_thin',
  text: `with ranked as (
      select at, count(*) over () as total, row_number() over (order by at) as place,
        row_number() over (order by pps desc nulls last, at) as by_pps,
        row_number() over (order by bps desc nulls last, at) as by_bps
      from attack_sample where attack_uuid = $1
    )
    delete from attack_sample s using ranked r
    where s.attack_uuid = $1 and s.at = r.at and r.total > ${MOST_SAMPLES} and r.place > 1
      and r.place <= r.total - ${NEWEST_KEPT} and r.place % 2 = 0 and r.by_pps > 1 and r.by_bps > 1`,
};

/**
 * `dated`: the time was told and is not merely that of its arrival. A sample without one that repeats the last one's
 * figures is a repeated notification and no news.
 */
export async function addSample(
  executor: Executor,
  attackUuid: string,
  sample: AttackSample,
  dated: boolean,
): Promise<void> {
  const values = [attackUuid, sample.at, sample.pps ?? null, sample.bps ?? null, dated];
  const added = await executor.rows(addStatement, values);
  if (added.length > 0) await executor.rows(thinStatement, [attackUuid]);
}
