/**
 * Does what is due without anybody asking: expired objects are marked, flowrules that accept rules forbid held,
 * measures looked at again where policies or holders are others, unconfirmed changes undone, objects that every
 * router let go of removed, silent attacks ended, old records forgotten. Every replica runs one; rows are taken with
 * "skip locked", so that they share the work. At most a second late.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { MitigationSettings } from '../commands/mitigate-attack.ts';
import { pruneChanges } from '../store/change-log.ts';
import { inTransaction } from '../store/transaction.ts';
import { applyUndo, type UndoEntry } from '../store/undo.ts';
import { judgeFlowrules } from './accepted-flowrules.ts';
import { pruneEvidence } from './attack-retention.ts';
import { pruneAudit } from './audit-retention.ts';
import { pruneBaselines } from './baseline-retention.ts';
import { EARLIEST_EXPIRY, markExpired, removeGone } from './marked-objects.ts';
import { removeAccounts } from './removed-accounts.ts';
import { EARLIEST_REVIEW, reviewMeasures } from './reviewed-measures.ts';
import { endSilentAttacks } from './silent-attacks.ts';
import { removeUnannounced } from './unannounced-flowrules.ts';

export interface Sweeper {
  /** Something may be due now: a router has acknowledged. */
  wake(): void;
  stop(): Promise<void>;
}

export interface SweeperOptions {
  /** Something was written to the change log. */
  readonly committed: () => void;
  readonly log?: (message: string) => void;
  readonly longestSleepMilliseconds?: number;
  readonly forgetEveryMilliseconds?: number;
  /** Absent: the audit log is kept for ever. */
  readonly auditKeepDays?: number | undefined;
  /** What is kept of attacks that ended, beside the attacks; absent: for ever, as far as there is room. */
  readonly attackKeepDays?: number | undefined;
  /** How measures are judged; absent: by themselves, without a budget. */
  readonly mitigation?: MitigationSettings | undefined;
}

/** A router that was away longer than this gets a snapshot. */
export const KEEP_CHANGES_SECONDS = 24 * 3600;
export const KEEP_ANSWERS_SECONDS = 24 * 3600;
const KEEP_ACKS_SECONDS = 24 * 3600;
const KEEP_CONFIRMATIONS_SECONDS = 24 * 3600;
/** Between two sweeps, however often it is woken: every acknowledgement of every router wakes it. */
const SHORTEST_SLEEP_MILLISECONDS = 100;
/** Unconfirmed changes that replicas share. */
const DUE_AT_ONCE = 32;

export function startSweeper(pool: pg.Pool, options: SweeperOptions): Sweeper {
  const longest = options.longestSleepMilliseconds ?? 900;
  const forgetEvery = options.forgetEveryMilliseconds ?? 60_000;
  const stopping = new AbortController();
  let rouse = new AbortController();
  let forgetAt = 0;

  async function run(): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      rouse = new AbortController();
      let sleep = longest;
      try {
        if (await sweepOnce(pool, options.mitigation)) options.committed();
        if (Date.now() >= forgetAt) {
          await forgetOld(pool);
          if (options.auditKeepDays !== undefined) await pruneAudit(pool, options.auditKeepDays);
          await pruneEvidence(pool, options.attackKeepDays);
          await pruneBaselines(pool);
          forgetAt = Date.now() + forgetEvery;
        }
        sleep = Math.min(longest, await millisecondsUntilDue(pool));
        if (failing) options.log?.('sweeping again');
        failing = false;
      } catch (error) {
        if (!failing) options.log?.(`cannot sweep: ${(error as Error).message}`);
        failing = true;
      }
      const shortest = Math.min(sleep, SHORTEST_SLEEP_MILLISECONDS);
      await delay(shortest, undefined, { signal: stopping.signal }).catch(() => {});
      const signal = AbortSignal.any([stopping.signal, rouse.signal]);
      await delay(sleep - shortest, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return {
    wake: () => rouse.abort(),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

const unlimited: MitigationSettings = { flowspecBudget: Number.POSITIVE_INFINITY };

/** True when the change log has something new. */
export async function sweepOnce(pool: pg.Pool, mitigation: MitigationSettings = unlimited): Promise<boolean> {
  const undone = await undoUnconfirmed(pool);
  const reviewed = await reviewMeasures(pool, mitigation);
  let expired = 0;
  try {
    expired = await markExpired(pool);
  } finally {
    await removeGone(pool);
  }
  await removeUnannounced(pool);
  const judged = await judgeFlowrules(pool, mitigation.flowspecBudget);
  const silent = await endSilentAttacks(pool);
  const inherited = await removeAccounts(pool);
  return undone + reviewed + expired + judged + silent + inherited > 0;
}

/** One confirmation a transaction: what it changes shows at once, whole. Returns how many were undone. */
export async function undoUnconfirmed(pool: pg.Pool): Promise<number> {
  for (let undone = 0; ; undone++) {
    if (!(await undoNext(pool))) return undone;
  }
}

function undoNext(pool: pg.Pool): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ change_uuid: string; rules: string[] }>({
      name: 'sweep_unconfirmed',
      text: `select change_uuid, array(select e->>'uuid' from json_array_elements(undo) e) as rules from (
          select * from confirmation
          where confirmed_at is null and rolled_back_at is null and deadline <= now()
          order by deadline limit ${DUE_AT_ONCE}
        ) due where pg_try_advisory_xact_lock(hashtextextended(change_uuid::text, 0)) limit 1`,
    });
    const due = rows[0];
    if (due !== undefined) {
      // Rules first, as commands do; who had them may have confirmed, or taken the undoing over.
      await client.query('select from firewall_rule where uuid = any($1::uuid[]) order by sequence for update', [
        due.rules,
      ]);
      const { rows: open } = await client.query<{ undo: UndoEntry[] }>(
        `update confirmation set rolled_back_at = date_trunc('milliseconds', now())
          where change_uuid = $1 and confirmed_at is null and rolled_back_at is null returning undo`,
        [due.change_uuid],
      );
      if (open[0] !== undefined) await applyUndo(client, open[0].undo);
    }
    return due !== undefined;
  });
}

const DUE = `select extract(epoch from least(
    ${EARLIEST_EXPIRY},
    ${EARLIEST_REVIEW},
    (select min(deadline) from confirmation where confirmed_at is null and rolled_back_at is null)
  ) - now())::float8 * 1000 as ms`;

/** Infinity when nothing is; 0 at the earliest. */
async function millisecondsUntilDue(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ ms: number | null }>({ name: 'sweep_due', text: DUE });
  const ms = rows[0]?.ms;
  return ms === null || ms === undefined ? Number.POSITIVE_INFINITY : Math.max(0, ms);
}

/** What nobody can ask for any more. */
export async function forgetOld(pool: pg.Pool): Promise<void> {
  await pruneChanges(pool, KEEP_CHANGES_SECONDS);
  await pool.query('delete from idempotency where created_at < now() - make_interval(secs => $1)', [
    KEEP_ANSWERS_SECONDS,
  ]);
  // The last acknowledgement of each router stays: it says since when its present state has been in force.
  await pool.query(
    `delete from router_ack a using router r
      where r.uuid = a.router_uuid and a.at < now() - make_interval(secs => $1)
        and (r.acked_xid is null or (a.xid, a.position) < (r.acked_xid, r.acked_position))`,
    [KEEP_ACKS_SECONDS],
  );
  await pool.query('delete from confirmation where deadline < now() - make_interval(secs => $1)', [
    KEEP_CONFIRMATIONS_SECONDS,
  ]);
}
