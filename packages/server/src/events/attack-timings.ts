/**
 * Measures how long it took from the decision about an attack until its first measures were announced and in force, once
 * that is known, and notes it with the attack, so that events tell of it. For the leader, beside the events. Decides nothing
 * about measures; what it has not found out within an hour stays unknown.
 */
import type pg from 'pg';
import type { AppliedView } from '../agents/applied-view.ts';
import type { RouterRegistry } from '../agents/router-registry.ts';
import type { ChangeTail } from '../store/change-tail.ts';
import { Alarm } from './alarm.ts';
import type { LeadersTask } from './events.ts';

export interface TimingServices {
  readonly pool: Pick<pg.Pool, 'query'>;
  readonly tail: Pick<ChangeTail, 'subscribe'>;
  readonly registry: Pick<RouterRegistry, 'onChange'>;
  readonly view: Pick<AppliedView, 'stateOf'>;
  /** Something was written to the change log. */
  readonly committed: () => void;
}

/** Between two looks, while a decision is fresh; and afterwards. */
const FRESH_MILLISECONDS = 50;
const LATER_MILLISECONDS = 1_000;
const FRESH_FOR_MILLISECONDS = 10_000;
const OPEN_AT_ONCE = 500;

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

/** Of the first decision are the measures that were written before it was noted. Held ones are announced nowhere. */
const OPEN = `select t.attack_uuid::text as attack, ${ms('t.decided_at')} as decided_ms, t.announce_ms, t.enforce_ms,
    ${ms('now()')} as now_ms,
    coalesce((select json_agg(${ms('f.applied_at')}) from flowrule f where f.attack_uuid = t.attack_uuid
      and f.created_at <= t.decided_at and f.held is null
      and (f.deletion_marked_at is null or f.applied_at is not null)), '[]') as flowrules,
    coalesce((select json_agg(json_build_object('uuid', r.uuid, 'xid', r.change_xid::text, 'position', r.change_position))
      from firewall_rule r where r.attack_uuid = t.attack_uuid and r.created_at <= t.decided_at
      and r.deletion_marked_at is null), '[]') as rules
  from attack_timing t
  where t.decided_at is not null and not t.followed and t.decided_at > now() - interval '1 hour'
  order by t.decided_at desc limit ${OPEN_AT_ONCE}`;

interface OpenRow {
  readonly attack: string;
  readonly decided_ms: number;
  readonly announce_ms: number | null;
  readonly enforce_ms: number | null;
  readonly now_ms: number;
  /** When each was announced; null: not yet. */
  readonly flowrules: readonly (number | null)[];
  readonly rules: readonly { readonly uuid: string; readonly xid: string; readonly position: number }[];
}

const NOTE = `with noted as (
    update attack_timing set announce_ms = coalesce(announce_ms, $2), enforce_ms = coalesce(enforce_ms, $3), followed = $4
    where attack_uuid = $1
  ), changed as (
    update attack set updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
      change_xid = pg_current_xact_id(), change_position = nextval('change_position')
    where uuid = $1 and ($2::float8 is not null or $3::float8 is not null) returning uuid, change_position
  )
  insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from changed`;

/** Kinds whose entries may say more of a measure. */
const kinds: ReadonlySet<string> = new Set(['attack', 'flowrule', 'firewall_rule']);

export function createAttackTimings(services: TimingServices): LeadersTask {
  return {
    name: 'measuring how long measures take',
    async run({ signal }) {
      const alarm = new Alarm();
      let open = true;
      const leaveTail = services.tail.subscribe({
        changes({ entries }) {
          if (!entries.some(({ kind }) => kinds.has(kind))) return;
          open = true;
          alarm.ring();
        },
        gap: alarm.ring,
      });
      // Routers report all the time: only while something is waited for is that of interest.
      const leaveRegistry = services.registry.onChange(() => {
        if (open) alarm.ring();
      });
      try {
        while (!signal.aborted) {
          const began = Date.now();
          const rows = await readOpen(services.pool);
          const youngest = Math.min(...rows.map(({ now_ms, decided_ms }) => now_ms - decided_ms));
          let noted = 0;
          for (const row of rows) noted += await note(services, row);
          open = rows.length > noted;
          await alarm.sleep(Number.POSITIVE_INFINITY, signal);
          const pause = youngest < FRESH_FOR_MILLISECONDS ? FRESH_MILLISECONDS : LATER_MILLISECONDS;
          await new Alarm().sleep(Math.min(began + pause, Date.now() + pause), signal);
        }
      } finally {
        leaveTail();
        leaveRegistry();
      }
    },
  };
}

async function readOpen(pool: TimingServices['pool']): Promise<readonly OpenRow[]> {
  return (await pool.query<OpenRow>({ name: 'attack_timings_open', text: OPEN })).rows;
}

/** Returns 1 when nothing more is to come of it. */
async function note({ pool, view, committed }: TimingServices, row: OpenRow): Promise<0 | 1> {
  const announced = row.announce_ms ?? announcedAfter(row);
  const enforced = row.enforce_ms ?? enforcedAfter(row, view);
  const isOver = announced !== undefined && enforced !== undefined;
  const fresh = (known: number | null, found: number | null | undefined) =>
    known === null && typeof found === 'number' ? Math.round(found * 10) / 10 : null;
  const values = [row.attack, fresh(row.announce_ms, announced), fresh(row.enforce_ms, enforced), isOver];
  const isNews = values[1] !== null || values[2] !== null;
  if (!isNews && !isOver) return 0;
  await pool.query({ name: 'attack_timings_note', text: NOTE, values });
  if (isNews) committed();
  return isOver ? 1 : 0;
}

/** Undefined: not known yet. Null: there is nothing to announce. */
function announcedAfter({ decided_ms, flowrules }: OpenRow): number | null | undefined {
  if (flowrules.length === 0) return null;
  if (flowrules.includes(null)) return undefined;
  return Math.max(0, Math.max(...(flowrules as readonly number[])) - decided_ms);
}

/** Undefined: not known yet. Null: no rule, or it was in force before anybody looked, at a moment that is not known. */
function enforcedAfter({ decided_ms, rules }: OpenRow, view: TimingServices['view']): number | null | undefined {
  if (rules.length === 0) return null;
  let last = decided_ms;
  for (const { uuid, xid, position } of rules) {
    const change = { xid, position };
    const { state, applied } = view.stateOf({ uuid, change, changedMilliseconds: decided_ms, deleted: false });
    if (state !== 'active') return undefined;
    for (const { at, latency_ms } of applied) {
      if (at === undefined || latency_ms === undefined) return null;
      last = Math.max(last, Date.parse(at));
    }
  }
  return last - decided_ms;
}
