/**
 * Writes the measures of an attack: makes, takes back, holds and lets go of them, each with its entry in the change log and
 * in the audit log. Owns the statements; decides nothing.
 */
import type { EdgeMeasure, FlowMeasure, MeasureNote } from '@levee/core/mitigation/measure.ts';
import { newUuid } from '../store/new-uuid.ts';
import { auditedText, recordOwnAction } from '../store/own-actions.ts';
import { markingText } from '../store/stored-kinds.ts';
import type { AttackRow } from './attack-row.ts';
import { auditedObject } from './audit.ts';
import type { Executor } from './executor.ts';
import { proposeFlowrule } from './propose-flowrule.ts';

const makeRulesStatement = {
  name: 'measures_make_rules',
  text: `with drawn as (
      select ordered.*, nextval('change_position') as position from (
        select * from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality
          given (uuid, fields, purpose, place) order by place
      ) ordered
    ), made as (
      insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at,
        expires_at, change_position, origin, attack_uuid, purpose)
      select uuid, position, $4, $5, $6::cidr, (fields::json->>'dst')::cidr, fields::json,
        date_trunc('milliseconds', now()), date_trunc('milliseconds', now()), $7, position, 'attack', $8, purpose
      from drawn returning uuid, change_position, owner_uuid, provider_uuid, ${auditedText('fields', 'expires_at')} as told
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from made
    )
    insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, after)
    select 'mitigate', 'firewall_rule', uuid, owner_uuid, provider_uuid, told from made`,
};

/** `subnet`: the owner's grant that covers them. */
export async function makeRules(
  executor: Executor,
  attack: AttackRow,
  subnet: string,
  rules: readonly EdgeMeasure[],
  expiresAt: Date,
): Promise<void> {
  if (rules.length === 0) return;
  await executor.rows(makeRulesStatement, [
    rules.map(() => newUuid()),
    rules.map(({ canonical }) => JSON.stringify(canonical)),
    rules.map(({ purpose }) => purpose),
    attack.owner_uuid,
    attack.provider_uuid,
    subnet,
    expiresAt,
    attack.uuid,
  ]);
}

const removeStatement = (kind: 'firewall_rule' | 'flowrule') => ({
  name: `measures_remove_${kind}`,
  text: `with ${markingText(kind, `r.uuid = any($1::uuid[])`, undefined, 'mitigate')} select 1 from marked`,
});
const removeStatements = { firewall_rule: removeStatement('firewall_rule'), flowrule: removeStatement('flowrule') };

export async function removeMeasures(
  executor: Executor,
  kind: 'firewall_rule' | 'flowrule',
  uuids: readonly string[],
): Promise<void> {
  if (uuids.length > 0) await executor.rows(removeStatements[kind], [uuids]);
}

/** One that stands already with that match, an operator's or a policy's, is left: what it matches is dealt with. */
export async function makeFlowrule(
  executor: Executor,
  attack: AttackRow,
  { canonical, held, purpose }: FlowMeasure,
  overridesAccept: boolean,
  judgedXid: string,
  expiresAt: Date,
): Promise<boolean> {
  const made = await proposeFlowrule(executor, {
    fields: canonical,
    attackUuid: attack.uuid,
    held: held?.reason,
    expiresAt,
    measure: { purpose, heldBy: held?.by, heldRule: held?.ruleUuid, overridesAccept, judgedXid },
  });
  if (!made.ok) {
    if (made.failure.code === 'conflict') return false;
    throw new Error(`a measure was refused: ${made.failure.details[0]?.message ?? made.failure.code}`);
  }
  const row = made.value;
  await recordOwnAction(executor.client, {
    action: 'mitigate',
    kind: 'flowrule',
    uuid: row.uuid,
    ownerUuid: row.owner_uuid,
    providerUuid: row.provider_uuid,
    after: auditedObject(row),
  });
  return true;
}

/** The whole of what holds one, so that it may let go of it later. */
const holdStatement = {
  name: 'measures_hold',
  text: `with held as (
      update flowrule r set held = $2, held_by = $3, held_rule = $4, judged_xid = $5::xid8, failure = null,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 and (r.held is distinct from $2 or r.held_by is distinct from $3) returning r.*
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from held
    ), told as (
      insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before, after)
      select 'mitigate', 'flowrule', h.uuid, h.owner_uuid, h.provider_uuid, json_build_object('held', b.held),
        json_build_object('held', h.held)
      from held h join flowrule b on b.uuid = h.uuid
    )
    select 1 from held`,
};

/** True: it was held otherwise, or not at all, or is let go of. */
export async function holdFlowrule(
  executor: Executor,
  uuid: string,
  held: FlowMeasure['held'],
  judgedXid: string,
): Promise<boolean> {
  const values = [uuid, held?.reason ?? null, held?.by ?? null, held?.ruleUuid ?? null, judgedXid];
  return (await executor.rows(holdStatement, values)).length > 0;
}

/** When they go of themselves, and whose they are, is no news to routers and peers: no entry in the change log. */
const refreshFlowrulesStatement = {
  name: 'measures_refresh_flowrules',
  text: `update flowrule r set expires_at = $2, attack_uuid = $3, owner_uuid = $4 where r.uuid = any($1::uuid[])`,
};
const refreshRulesStatement = {
  name: 'measures_refresh_rules',
  text: `update firewall_rule r set expires_at = $2, attack_uuid = $3, owner_uuid = $4, subnet = $5
    where r.uuid = any($1::uuid[])`,
};

/** Those that stay: until when, and of which attack and holder they are from now on. `subnet`: the holder's grant. */
export async function refreshMeasures(
  executor: Executor,
  attack: AttackRow,
  { routes, rules, subnet }: { routes: readonly string[]; rules: readonly string[]; subnet: string | undefined },
  expiresAt: Date,
): Promise<void> {
  const whose = [expiresAt, attack.uuid, attack.owner_uuid];
  if (routes.length > 0) await executor.rows(refreshFlowrulesStatement, [routes, ...whose]);
  if (rules.length > 0 && subnet !== undefined) await executor.rows(refreshRulesStatement, [rules, ...whose, subnet]);
}

const endStatement = (kind: 'firewall_rule' | 'flowrule') => ({
  name: `measures_end_${kind}`,
  text: `update ${kind} r set expires_at = $2
    where r.attack_uuid = $1 and r.origin = 'attack' and r.deletion_marked_at is null and r.expires_at is distinct from $2`,
});
const endStatements = [endStatement('firewall_rule'), endStatement('flowrule')];

/** All measures of an attack go then. */
export async function endMeasures(executor: Executor, attackUuid: string, expiresAt: Date): Promise<void> {
  for (const statement of endStatements) await executor.rows(statement, [attackUuid, expiresAt]);
}

const noteStatement = {
  name: 'measures_note',
  text: `with changed as (
      update attack r set mitigation = $2, details = $3, measures_at = $4, measure_notes = $5,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 returning *
    )
    insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from changed`,
};

/** What was done, on the attack itself. */
export async function noteMeasures(
  executor: Executor,
  attackUuid: string,
  mitigation: AttackRow['mitigation'],
  details: object,
  notes: readonly MeasureNote[],
  at: Date,
): Promise<void> {
  await executor.rows(noteStatement, [attackUuid, mitigation, JSON.stringify(details), at, JSON.stringify(notes)]);
}

const undecided: MeasureNote = {
  vector: 'total',
  where: 'edge',
  text: 'Measures could not be decided, by a mistake that the log tells of: those that stand are as they were.',
};
const undecidedStatement = {
  name: 'measures_undecided',
  text: `with changed as (
      update attack r set measure_notes = jsonb_build_array($2::jsonb) || r.measure_notes::jsonb,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 and not r.measure_notes::jsonb @> jsonb_build_array($2::jsonb) returning *
    )
    insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from changed`,
};

/** Said once, until measures are decided again. */
export async function noteUndecided(executor: Executor, attackUuid: string): Promise<void> {
  await executor.rows(undecidedStatement, [attackUuid, JSON.stringify(undecided)]);
}

const waiveStatement = (kind: 'firewall_rule' | 'flowrule') => ({
  name: `measures_waive_${kind}`,
  text: `insert into waived_measure (attack_uuid, kind, purpose)
    select attack_uuid, '${kind}', purpose from ${kind} where uuid = $1 and origin = 'attack' on conflict do nothing`,
});
const waiveStatements = { firewall_rule: waiveStatement('firewall_rule'), flowrule: waiveStatement('flowrule') };

/** Somebody takes it back: it is not made again for its attack. Of what is no measure nothing is kept. */
export async function waiveMeasure(
  executor: Executor,
  kind: 'firewall_rule' | 'flowrule',
  uuid: string,
): Promise<void> {
  await executor.rows(waiveStatements[kind], [uuid]);
}
