/** From requests about filters to commands, and from rows to answers. Decides nothing itself. */
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import type { CanonicalFilter } from '@levee/core/filter/filter.ts';
import { filterNeed } from '@levee/core/filter/need.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import type pg from 'pg';
import type { AppliedView } from '../../agents/applied-view.ts';
import { objectEntry } from '../../commands/audit.ts';
import { createFilter } from '../../commands/create-filter.ts';
import { executorOf } from '../../commands/executor.ts';
import type { FilterRow } from '../../commands/filter-row.ts';
import { markObject } from '../../commands/mark-object.ts';
import { refuse } from '../../commands/outcome.ts';
import { filterChunks, readFilter } from '../../commands/read-filters.ts';
import type { ChangePlace } from '../../commands/stored-row.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, judgedBy } from '../call.ts';
import { takeExpiresAt } from '../expires-at.ts';
import { renderFilter } from '../filter-answer.ts';
import { filterKindAnswer } from '../filter-kind-answer.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import type { AppliedStates } from '../object-answer.ts';
import { isUuid } from '../uuid-text.ts';

export interface FilterServices {
  readonly pool: pg.Pool;
  readonly states: AppliedStates;
  readonly waitApplied: AppliedView['waitApplied'];
  readonly now: () => number;
}

/** A filter that is not stored yet has no place in the order. */
const unplaced = 0;

interface JudgedFilter {
  readonly uuid: string;
  readonly canonical: CanonicalFilter;
  readonly expiresAt: Date | undefined;
}

export function filterHandlers({ pool, states, waitApplied, now }: FilterServices): Record<string, Handler> {
  const listing: Listing<FilterRow> = {
    chunks: (scope) => filterChunks(pool, scope),
    render: (row) => renderFilter(row, states),
  };
  const kinds: Handler = { read: () => ({ ok: true, answer: { body: catalogue } }) };
  return {
    createFilter: {
      write: {
        judge(call) {
          const { fields, expiresAt, problems } = takeExpiresAt(call.body === undefined ? {} : call.body, now());
          const uuid = newUuid();
          const parsed = parseFilter(fields, { uuid, sequence: unplaced }, ['expires_at']);
          if (!parsed.ok) return { ok: false, problems: [...parsed.problems, ...problems] };
          return judgedBy(problems, { uuid, canonical: parsed.canonical, expiresAt } satisfies JudgedFilter);
        },
        async run(call, executor, filter: JudgedFilter) {
          const outcome = await createFilter(executor, call.caller, filter);
          if (!outcome.ok) return outcome;
          const row = outcome.value;
          const change = cursorOf(row);
          return {
            ok: true,
            value: {
              change,
              settled: (milliseconds) => waitApplied(change, milliseconds, [row.uuid], { needs: filterNeed(row.kind) }),
              render: () => renderFilter(row, states).text,
              audit: [objectEntry('filter', undefined, row)],
            },
          };
        },
      },
    },
    readFilter: {
      async read(call) {
        const uuid = call.params.uuid ?? '';
        if (!isUuid(uuid)) return refuse('not_found');
        const outcome = await readFilter(executorOf(pool), call.caller, uuid);
        if (!outcome.ok) return outcome;
        return { ok: true, answer: { body: `[${renderFilter(outcome.value, states).text}]` } };
      },
    },
    deleteFilter: {
      write: {
        async run(call, executor) {
          const uuid = (call.params.uuid ?? '').toLowerCase();
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await markObject(executor, call.caller, 'filter', uuid);
          if (!outcome.ok) return outcome;
          const { before, change, fresh } = outcome.value;
          const message = 'The filter is marked for deletion.';
          const body = JSON.stringify({ uuid, state: 'marked_for_deletion', message });
          const audit = fresh ? [objectEntry('filter', before, undefined)] : [];
          return { ok: true, value: { change: cursorOf(change), render: () => body, audit } };
        },
      },
    },
    listFilters: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { ownerUuid: call.caller.accountUuid }, filter),
    },
    listProviderFilters: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { providerUuid: call.caller.accountUuid }, filter),
    },
    listFilterKinds: kinds,
    listProviderFilterKinds: kinds,
  };
}

const catalogue = JSON.stringify(filterKinds.map(filterKindAnswer));

function cursorOf(row: ChangePlace): Cursor {
  return { xid: row.change_xid, position: row.change_position };
}
