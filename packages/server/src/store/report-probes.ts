/**
 * Stores what routers found when they probed their tunnels, as a window of some minutes for each end. Makes no entry in
 * the change log: no state is derived from it. What is reported of an end that is not there is left aside.
 */
import { addFinding, type ProbeFinding, type ProbeMinute } from '@levee/core/tunnel/probe-window.ts';
import type { ReportStatement } from './reports.ts';

export interface ReportedProbe extends ProbeFinding {
  readonly tunnelUuid: string;
  /** RFC 3339. */
  readonly lastAnswerAt: string | undefined;
}

/** An end that is being removed at this moment is locked, and passed over. */
const FOUND = `select e.tunnel_uuid::text as tunnel, e.router_uuid::text as router, coalesce(p.minutes, '[]') as minutes
  from unnest($1::uuid[], $2::uuid[]) n (tunnel_uuid, router_uuid)
  join tunnel_end e on e.tunnel_uuid = n.tunnel_uuid and e.router_uuid = n.router_uuid and not e.retired
  left join tunnel_probe p on p.tunnel_uuid = e.tunnel_uuid and p.router_uuid = e.router_uuid
  for key share of e skip locked`;

const SAVE = `insert into tunnel_probe (tunnel_uuid, router_uuid, at, last_answer_at, minutes)
  select n.tunnel, n.router, to_timestamp($5::float8 / 1000), n.last_answer_at, n.minutes::json
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[]) n (tunnel, router, last_answer_at, minutes)
  on conflict (tunnel_uuid, router_uuid) do update set at = excluded.at, minutes = excluded.minutes,
    last_answer_at = greatest(tunnel_probe.last_answer_at, excluded.last_answer_at)`;

/** The routers' rows are locked: nobody else stores probes of theirs. */
export async function saveProbes(
  statement: ReportStatement,
  reports: readonly { readonly routerUuid: string; readonly probes?: readonly ReportedProbe[] | undefined }[],
  atMilliseconds: number,
): Promise<void> {
  const probes = reports.flatMap(({ routerUuid, probes: list }) =>
    (list ?? []).map((probe) => ({ key: probe.tunnelUuid + routerUuid, routerUuid, ...probe })),
  );
  if (probes.length === 0) return;
  const byEnd = Map.groupBy(probes, ({ key }) => key);
  const ends = [...byEnd.values()].flatMap(([probe]) => (probe === undefined ? [] : [probe]));
  const { rows } = await statement<{ tunnel: string; router: string; minutes: readonly ProbeMinute[] }>(
    'reports_probed_ends',
    FOUND,
    [ends.map((end) => end.tunnelUuid), ends.map((end) => end.routerUuid)],
  );
  if (rows.length === 0) return;
  const found = rows.map(({ tunnel, router, minutes }) => {
    const list = byEnd.get(tunnel + router) ?? [];
    const answers = list.flatMap(({ lastAnswerAt }) => (lastAnswerAt === undefined ? [] : [lastAnswerAt]));
    return {
      tunnel,
      router,
      lastAnswerAt: answers.sort().at(-1) ?? null,
      minutes: JSON.stringify(list.reduce((window, probe) => addFinding(window, probe, atMilliseconds), minutes)),
    };
  });
  await statement('reports_probes', SAVE, [
    found.map((end) => end.tunnel),
    found.map((end) => end.router),
    found.map((end) => end.lastAnswerAt),
    found.map((end) => end.minutes),
    atMilliseconds,
  ]);
}
