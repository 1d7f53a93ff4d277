/**
 * Records what is told of an attack, by the detector or by another system. Start, changes and end are one row, in
 * whatever order they arrive; what is told again changes nothing. Owns what becomes of the figures and whom an attack
 * belongs to; which attack a report is of, and what it says of others, is core's attack/placement.ts to know. Mitigates
 * nothing.
 */
import type { AttackDetails, AttackRow, Mitigation } from './attack-row.ts';
import { addSample } from './attack-samples.ts';
import type { Executor } from './executor.ts';
import { findHolder, type Holder, loadKnownAttacks, placeAmong, takeTurn } from './known-attacks.ts';
import { done, type Failure, type Outcome, refuse } from './outcome.ts';
import { type AttackFigures, changeAttack, createAttack, noteReport } from './write-attack.ts';

export interface AttackReport {
  /** Who tells; `levee` is the detector here. */
  readonly source: string;
  /** Tells the source's attacks apart. Undefined: the times do. */
  readonly externalId: string | undefined;
  /** Canonical: an address, or a subnet whose addresses are attacked together. */
  readonly dst: string;
  readonly phase: 'started' | 'changed' | 'ended';
  readonly startedAt?: Date | undefined;
  readonly endedAt?: Date | undefined;
  /** When `pps` and `bps` were measured. */
  readonly measuredAt?: Date | undefined;
  /** For what is not told; no other time lies after it. */
  readonly now: Date;
  readonly vectors?: readonly string[] | undefined;
  /** Packets and bits a second at that moment. */
  readonly pps?: number | undefined;
  readonly bps?: number | undefined;
  readonly mitigation?: Mitigation | undefined;
  /** Each member that is given replaces the one that is known. */
  readonly details: AttackDetails;
}

export interface AttackChange {
  /** Undefined: it is new. */
  readonly before: AttackRow | undefined;
  readonly row: AttackRow;
}

export interface RecordedAttack {
  /** What the report is of. */
  readonly row: AttackRow;
  /** Whoever holds all of the destination at present; undefined: nobody. */
  readonly holder: Holder | undefined;
  /** What is another by it: nothing where it brings no news, more than the one where it says when others ended. */
  readonly changes: readonly AttackChange[];
}

const nothingTold: AttackFigures = { vectors: [], peak_pps: 0, peak_bps: 0, mitigation: 'observe', details: {} };

/** In a transaction. Refuses a destination that nobody holds, and an id that is of an attack on another one. */
export async function recordAttack(executor: Executor, report: AttackReport): Promise<Outcome<RecordedAttack>> {
  if (!executor.inTransaction) throw new Error('an attack is recorded outside a transaction');
  await takeTurn(executor, report);
  const known = await loadKnownAttacks(executor, report);
  const elsewhere = known.find(({ dst }) => dst !== report.dst);
  if (elsewhere !== undefined) return refuse('conflict', otherDestination(report, elsewhere.dst));
  const holder = await findHolder(executor, report.dst);
  const { target, others } = placeAmong(known, report, holder);
  const rowOf = (uuid: string | undefined) => known.find((row) => row.uuid === uuid);

  const before = rowOf(target.uuid);
  const owner = before ?? holder;
  if (owner === undefined) return nobodyHolds(report.dst);
  const { owner_uuid, provider_uuid } = owner;
  const { dst, source, externalId } = report;
  const names = { owner_uuid, provider_uuid, dst, source, external_id: externalId ?? null, part_of: null };
  const told = figuresWith(before ?? nothingTold, report);

  const changes: AttackChange[] = [];
  const row =
    before === undefined
      ? await createAttack(executor, names, target, told)
      : await changeAttack(executor, before, target, told, true);
  if (row !== undefined) changes.push({ before, row });
  for (const other of others) {
    const former = rowOf(other.uuid);
    const changed =
      former === undefined
        ? await createAttack(executor, names, other, nothingTold)
        : await changeAttack(executor, former, other, former, false);
    if (changed !== undefined) changes.push({ before: former, row: changed });
  }
  const recorded = row ?? (before && (await noteReport(executor, before, target, report.now)));
  if (recorded === undefined) throw new Error('a new attack was not written');
  await keepSample(executor, recorded.uuid, report);
  return done({ row: recorded, holder, changes });
}

function figuresWith(known: AttackFigures, report: AttackReport): AttackFigures {
  return {
    vectors: [...new Set([...known.vectors, ...(report.vectors ?? [])])],
    peak_pps: Math.max(known.peak_pps, report.pps ?? 0),
    peak_bps: Math.max(known.peak_bps, report.bps ?? 0),
    mitigation: report.mitigation ?? known.mitigation,
    details: { ...known.details, ...report.details },
  };
}

/** What an undated report of an end repeats was measured before. */
async function keepSample(executor: Executor, uuid: string, report: AttackReport): Promise<void> {
  const { pps, bps, measuredAt, phase, startedAt, endedAt, now } = report;
  if (pps === undefined && bps === undefined) return;
  const dated = measuredAt ?? (phase === 'ended' ? endedAt : phase === 'started' ? startedAt : undefined);
  if (dated === undefined && phase === 'ended') return;
  await addSample(executor, uuid, { at: dated ?? now, pps, bps }, dated !== undefined);
}

function nobodyHolds(dst: string): { readonly ok: false; readonly failure: Failure } {
  return refuse('validation_failed', {
    field: '/dst',
    code: 'not_protected',
    message: `dst: no provider of this installation holds ${dst}; it must lie inside one provider's prefix`,
  });
}

function otherDestination({ source, externalId, dst }: AttackReport, known: string) {
  return {
    field: '/external_id',
    code: 'other_destination',
    message: `external_id: ${source} told of ${externalId} as an attack on ${known}, not on ${dst}; another attack needs another one`,
  };
}
