/** From requests about attacks to commands, and from rows to answers. Decides nothing itself. */
import { writePcap } from '@levee/core/attack/pcap.ts';
import type pg from 'pg';
import type { AttackRow } from '../../commands/attack-row.ts';
import type { AuditEntry } from '../../commands/audit.ts';
import { executorOf } from '../../commands/executor.ts';
import { refuse } from '../../commands/outcome.ts';
import { attackChunks, readAttack, readAttackPackets } from '../../commands/read-attacks.ts';
import { type AttackChange, type AttackReport, recordAttack } from '../../commands/record-attack.ts';
import { attackJson, renderAttack, renderWholeAttack } from '../attack-answer.ts';
import { judgeAttackReport, judgeFastnetmonReport } from '../attack-report.ts';
import type { Call, Handler, WriteHandler, Wrote } from '../call.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import type { AppliedStates } from '../object-answer.ts';
import { isUuid } from '../uuid-text.ts';

export interface AttackServices {
  readonly pool: pg.Pool;
  readonly now: () => number;
  readonly states: AppliedStates;
  /** A BGP speaker is configured. */
  readonly hasSpeaker: boolean;
}

export function attackHandlers(services: AttackServices): Record<string, Handler> {
  const { pool, now, states, hasSpeaker } = services;
  const listing: Listing<AttackRow> = { chunks: (scope) => attackChunks(pool, scope), render: renderAttack };
  const readOne: Handler = {
    async read(call: Call) {
      const uuid = call.params.uuid ?? '';
      if (!isUuid(uuid)) return refuse('not_found');
      const attack = await readAttack(executorOf(pool), call.caller, uuid);
      if (attack === undefined) return refuse('not_found');
      return { ok: true, answer: { body: `[${renderWholeAttack(attack, { applied: states, hasSpeaker })}]` } };
    },
  };
  const readPcap: Handler = {
    async read(call: Call) {
      const uuid = call.params.uuid ?? '';
      if (!isUuid(uuid)) return refuse('not_found');
      const packets = await readAttackPackets(executorOf(pool), call.caller, uuid);
      if (packets === undefined) return refuse('not_found');
      const captured = packets.map(({ at_ms, length, header }) => ({
        atMs: at_ms,
        length,
        header: Buffer.from(header, 'base64'),
      }));
      const headers = { 'content-disposition': `attachment; filename="attack-${uuid.toLowerCase()}.pcap"` };
      return { ok: true, answer: { body: writePcap(captured), headers } };
    },
  };
  return {
    listAttacks: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { ownerUuid: call.caller.accountUuid }, filter),
    },
    listProviderAttacks: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { providerUuid: call.caller.accountUuid }, filter),
    },
    listAllAttacks: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) => answerList(listing, call, 'everyone', filter),
    },
    readAttack: readOne,
    readAnyAttack: readOne,
    readAttackPcap: readPcap,
    readAnyAttackPcap: readPcap,
    recordAttack: { write: { judge: (call) => judgeAttackReport(call.body, now()), run: record } },
    recordFastnetmonAttack: {
      write: {
        judge: (call, found) => judgeFastnetmonReport(call.body, found, now()),
        run: async (call, executor, report: AttackReport) => fieldsOfFastnetmon(await record(call, executor, report)),
      },
    },
  };
}

const record: WriteHandler['run'] = async (_call, executor, report: AttackReport): Promise<Wrote> => {
  const outcome = await recordAttack(executor, report);
  if (!outcome.ok) return outcome;
  const { row, changes } = outcome.value;
  return {
    ok: true,
    value: {
      change: { xid: row.change_xid, position: row.change_position },
      audit: changes.map(entryOf),
      render: () => renderAttack(row).text,
    },
  };
};

function entryOf({ before, row }: AttackChange): AuditEntry {
  return {
    kind: 'attack',
    uuid: row.uuid,
    ownerUuid: row.owner_uuid,
    providerUuid: row.provider_uuid,
    ...(before !== undefined && { before: attackJson(before) }),
    after: attackJson(row),
  };
}

/** The command speaks of its own fields; this document calls them otherwise. */
function fieldsOfFastnetmon(wrote: Wrote): Wrote {
  if (wrote.ok) return wrote;
  const names: Readonly<Record<string, string>> = { '/dst': '/ip', '/external_id': '/attack_details/attack_uuid' };
  const details = wrote.failure.details.map((each) => {
    const field = names[each.field] ?? each.field;
    const message = each.message.replace(/^\w+(?=: )/, field.slice(1).replaceAll('/', '.'));
    return { ...each, field, message };
  });
  return refuse(wrote.failure.code, ...details);
}
