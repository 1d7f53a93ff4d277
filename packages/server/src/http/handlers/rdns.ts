/** From requests about PTR records to commands, and from rows to answers. Decides nothing itself. */
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import { type Problem, problem, quote } from '@levee/core/problem.ts';
import { parseHostName } from '@levee/core/rdns/host-name.ts';
import type { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import type pg from 'pg';
import type { WaitOutcome } from '../../agents/applied-view.ts';
import { type AuditEntry, objectEntry } from '../../commands/audit.ts';
import { createRdns } from '../../commands/create-rdns.ts';
import { deleteRdns } from '../../commands/delete-rdns.ts';
import { type Executor, executorOf } from '../../commands/executor.ts';
import type { RdnsRow } from '../../commands/rdns-row.ts';
import { type KnownZone, loadZoneIndex, rdnsChunks, readRdns } from '../../commands/read-rdns.ts';
import { updateRdns } from '../../commands/update-rdns.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, type Judged, judgedBy, membersOf, type Wrote } from '../call.ts';
import { answerList, judgeDestination, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import { renderRdns } from '../rdns-answer.ts';

/** Resolves as soon as it is known what became of a record's change, or when the time is over. */
export type RdnsSettled = (uuid: string, changePosition: number, milliseconds: number) => Promise<WaitOutcome>;

export interface RdnsServices {
  readonly pool: pg.Pool;
  readonly settled: RdnsSettled;
}

interface JudgedRdns {
  readonly address: string;
  readonly record: string;
}

export function rdnsHandlers(services: RdnsServices): Record<string, Handler> {
  return {
    createRdns: {
      write: {
        judge: judgeRecord,
        async run(call, executor, { address, record }: JudgedRdns) {
          const outcome = await createRdns(executor, call.caller, { uuid: newUuid(), address, record });
          if (!outcome.ok) return outcome;
          const row = outcome.value;
          return written(services, executor, row, [objectEntry('rdns', undefined, row)]);
        },
      },
    },
    updateRdns: {
      write: {
        judge: judgeRecord,
        async run(call, executor, { address, record }: JudgedRdns) {
          const outcome = await updateRdns(executor, call.caller, address, record);
          if (!outcome.ok) return outcome;
          const { before, row } = outcome.value;
          return written(services, executor, row, [objectEntry('rdns', before, row)]);
        },
      },
    },
    deleteRdns: {
      write: {
        judge(call) {
          const problems: Problem[] = [];
          const address = readIps(membersOf(call.body).ips, problems);
          return judgedBy(problems, address);
        },
        async run(call, executor, address: string) {
          const outcome = await deleteRdns(executor, call.caller, address);
          if (!outcome.ok) return outcome;
          const row = outcome.value;
          const message = 'The rDNS record is marked for deletion.';
          return written(services, executor, row, [objectEntry('rdns', row, undefined)], message);
        },
      },
    },
    listRdns: {
      judge(call) {
        const judged = judgeList(call);
        const problems: Problem[] = judged.ok ? [] : [...judged.problems];
        const { ip } = call.query;
        const dst = typeof ip === 'string' ? judgeDestination(ip, problems, 'ip') : undefined;
        return judgedBy(problems, judged.ok ? { ...(judged.value as ListFilter), dst } : undefined);
      },
      async read(call: Call, filter: ListFilter) {
        const zones = await loadZoneIndex(executorOf(services.pool));
        const listing: Listing<RdnsRow> = {
          chunks: (scope) => rdnsChunks(services.pool, scope),
          render: (row) => renderRdns(row, zones),
        };
        const { role, accountUuid } = call.caller;
        const of = role === 'provider' ? { providerUuid: accountUuid } : { ownerUuid: accountUuid };
        return answerList(listing, call, of, filter);
      },
    },
  };
}

async function written(
  { pool, settled }: RdnsServices,
  executor: Executor,
  row: RdnsRow,
  audit: readonly AuditEntry[],
  message?: string,
): Promise<Wrote> {
  let shown: { row: RdnsRow; zones: ZoneIndex<KnownZone> } = { row, zones: await loadZoneIndex(executor) };
  return {
    ok: true,
    value: {
      change: { xid: row.change_xid, position: row.change_position },
      uuids: [row.uuid],
      audit,
      render: () => renderRdns(shown.row, shown.zones, message).text,
      async settled(milliseconds) {
        const outcome = await settled(row.uuid, row.change_position, milliseconds);
        const after = executorOf(pool);
        const [now, zones] = await Promise.all([readRdns(after, row.uuid), loadZoneIndex(after)]);
        // A deleted record's row is gone once the server let go of it.
        const gone = { ...row, applied_position: row.change_position, applied_ms: null };
        shown = { row: now ?? (row.deleted ? gone : row), zones };
        return outcome;
      },
    },
  };
}

function judgeRecord(call: Call): Judged {
  const { ips, record } = membersOf(call.body);
  const problems: Problem[] = [];
  const address = readIps(ips, problems);
  const name = typeof record === 'string' ? parseHostName(record) : undefined;
  if (name?.ok === false) problems.push(problem(['record'], name.code, name.sentence));
  return judgedBy(problems, { address, record: name?.ok ? name.name : '' });
}

/** The canonical address; undefined after a problem was added, or when the schema has found one. */
function readIps(ips: unknown, problems: Problem[]): string | undefined {
  if (typeof ips !== 'string') return undefined;
  if (ips.includes('/')) {
    const sentence = `must be one address, not a subnet (despite its name); received ${quote(ips)}`;
    problems.push(problem(['ips'], 'subnet_given', sentence));
    return undefined;
  }
  const read = parseAddress(ips);
  if (read.ok) return formatAddress(read.address);
  problems.push(problem(['ips'], read.code, read.sentence));
  return undefined;
}
