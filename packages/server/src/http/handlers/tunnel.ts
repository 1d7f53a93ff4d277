/** From requests about tunnels to commands, and from rows to answers. Decides nothing itself. */
import type { Problem } from '@levee/contract/errors.ts';
import type { ConfigFormat } from '@levee/contract/schemas/tunnel.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { judgeTunnelChange, parseTunnel } from '@levee/core/tunnel/parse-tunnel.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type pg from 'pg';
import type { AppliedView } from '../../agents/applied-view.ts';
import { type AuditEntry, objectEntry } from '../../commands/audit.ts';
import type { Caller } from '../../commands/caller.ts';
import { changeTunnel } from '../../commands/change-tunnel.ts';
import { createTunnel } from '../../commands/create-tunnel.ts';
import { executorOf } from '../../commands/executor.ts';
import { markObject } from '../../commands/mark-object.ts';
import { done, type Outcome, refuse } from '../../commands/outcome.ts';
import { mayRead } from '../../commands/read-rules.ts';
import { readTunnel, tunnelChunks } from '../../commands/read-tunnels.ts';
import type { ChangePlace } from '../../commands/stored-row.ts';
import type { TunnelRow } from '../../commands/tunnel-row.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, judgedBy, membersOf, type Wrote } from '../call.ts';
import { judgeExpiresAt } from '../expires-at.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import type { AppliedStates } from '../object-answer.ts';
import { renderTunnel, tunnelScope } from '../tunnel-answer.ts';
import { configOf } from '../tunnel-config.ts';
import { isUuid } from '../uuid-text.ts';

export interface TunnelServices {
  readonly pool: pg.Pool;
  readonly states: AppliedStates;
  readonly waitApplied: AppliedView['waitApplied'];
  readonly pools: InnerPools;
  readonly now: () => number;
}

interface JudgedTunnel {
  readonly canonical: CanonicalTunnel;
  readonly expiresAt: Date | undefined;
}

interface JudgedChange {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly expiresAt: Date | null | undefined;
}

export function tunnelHandlers(services: TunnelServices): Record<string, Handler> {
  const { pool, states, pools } = services;
  const listing: Listing<TunnelRow> = {
    chunks: (scope) => tunnelChunks(pool, scope),
    render: (row) => renderTunnel(row, states),
  };
  const framed: Listing<TunnelRow> = { ...listing, frame: { before: '{"tunnels":', after: '}' } };
  const written = (row: TunnelRow, audit: readonly AuditEntry[]): Wrote => ({
    ok: true,
    value: {
      change: cursorOf(row),
      render: () => renderTunnel(row, states).text,
      settled: (milliseconds) => services.waitApplied(cursorOf(row), milliseconds, [row.uuid], tunnelScope(row)),
      audit,
    },
  });
  return {
    createTunnel: {
      write: {
        judge(call) {
          const body = membersOf(call.body);
          const problems: Problem[] = [];
          const expiresAt = judgeExpiresAt(body.expires_at, services.now(), problems);
          const parsed = parseTunnel(body);
          if (!parsed.ok) return { ok: false, problems: [...parsed.problems, ...problems] };
          return judgedBy(problems, { canonical: parsed.canonical, expiresAt } satisfies JudgedTunnel);
        },
        async run(call, executor, judged: JudgedTunnel) {
          const outcome = await createTunnel(executor, call.caller, pools, { uuid: newUuid(), ...judged });
          if (!outcome.ok) return outcome;
          return written(outcome.value, [objectEntry('tunnel', undefined, outcome.value)]);
        },
      },
    },
    listTunnels: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(framed, call, { ownerUuid: call.caller.accountUuid }, filter),
    },
    listProviderTunnels: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { providerUuid: call.caller.accountUuid }, filter),
    },
    readTunnel: {
      async read(call) {
        const found = await find(services, call);
        if (!found.ok) return found;
        return { ok: true, answer: { body: `[${renderTunnel(found.value, states).text}]` } };
      },
    },
    readTunnelConfig: {
      async read(call) {
        const found = await find(services, call);
        if (!found.ok) return found;
        const text = configOf(found.value, call.query as { format: ConfigFormat; location?: string });
        return text.ok ? { ok: true, answer: { body: text.value } } : text;
      },
    },
    changeTunnel: {
      write: {
        judge(call) {
          const { expires_at, ...fields } = membersOf(call.body);
          const problems = [...judgeTunnelChange(fields)];
          const expiresAt = expires_at === null ? null : judgeExpiresAt(expires_at, services.now(), problems);
          return judgedBy(problems, { fields, expiresAt } satisfies JudgedChange);
        },
        async run(call, executor, judged: JudgedChange) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await changeTunnel(executor, call.caller, pools, { uuid: uuid.toLowerCase(), ...judged });
          if (!outcome.ok) return outcome;
          const { before, row } = outcome.value;
          return written(row, [objectEntry('tunnel', before, row)]);
        },
      },
    },
    deleteTunnel: {
      write: {
        async run(call, executor) {
          const uuid = (call.params.uuid ?? '').toLowerCase();
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await markObject(executor, call.caller, 'tunnel', uuid);
          if (!outcome.ok) return outcome;
          const { before, change, fresh } = outcome.value;
          const message = 'The tunnel is marked for deletion.';
          const body = JSON.stringify({ uuid, state: 'marked_for_deletion', message });
          const audit = fresh ? [objectEntry('tunnel', before, undefined)] : [];
          return { ok: true, value: { change: cursorOf(change), render: () => body, audit } };
        },
      },
    },
  };
}

function cursorOf(change: ChangePlace): Cursor {
  return { xid: change.change_xid, position: change.change_position };
}

/** The tunnel that the path names, if it exists for the caller. */
async function find(
  { pool }: TunnelServices,
  call: { params: Call['params']; caller: Caller },
): Promise<Outcome<TunnelRow>> {
  const uuid = call.params.uuid ?? '';
  const row = isUuid(uuid) ? await readTunnel(executorOf(pool), uuid) : undefined;
  return row === undefined || !mayRead(call.caller, row) ? refuse('not_found') : done(row);
}
