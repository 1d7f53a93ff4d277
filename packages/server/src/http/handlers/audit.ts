/** From requests about the audit log to rows and answers. Decides nothing itself. */
import type { Problem } from '@levee/contract/errors.ts';
import type pg from 'pg';
import { type AuditFilter, type AuditRow, auditChunks } from '../../commands/list-audit.ts';
import { auditText } from '../audit-answer.ts';
import { type Call, type Handler, isSound, type Judged, judgedBy } from '../call.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';

export interface AuditServices {
  readonly pool: pg.Pool;
}

interface JudgedAudit {
  readonly list: ListFilter;
  readonly filter: AuditFilter;
}

export function auditHandlers({ pool }: AuditServices): Record<string, Handler> {
  return {
    listAudit: {
      judge: judgeAudit,
      read(call: Call, { list, filter }: JudgedAudit) {
        const { caller } = call;
        const listing: Listing<AuditRow> = {
          chunks: ({ after }) => auditChunks(pool, caller, filter, after),
          render: (row) => ({ state: row.operation, text: auditText(row, caller) }),
        };
        return answerList(listing, call, { ownerUuid: caller.accountUuid }, list);
      },
    },
  };
}

function judgeAudit(call: Call, found: readonly Problem[]): Judged {
  const list = judgeList(call);
  const { query } = call;
  const text = (name: string) => (typeof query[name] === 'string' ? (query[name] as string) : undefined);
  const moment = (name: string) => (isSound(found, `?${name}`) && text(name) ? new Date(text(name) ?? '') : undefined);
  const filter: AuditFilter = {
    objectUuid: text('object_uuid'),
    kind: text('kind'),
    operation: text('operation'),
    actorUuid: text('actor_uuid'),
    since: moment('since'),
    until: moment('until'),
    afterSequence: typeof query.after === 'number' ? query.after : undefined,
    newestFirst: query.order === 'desc',
  };
  return list.ok ? judgedBy([], { list: list.value as ListFilter, filter } satisfies JudgedAudit) : list;
}
