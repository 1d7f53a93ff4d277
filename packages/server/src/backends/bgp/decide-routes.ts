/**
 * Decides what a speaker is to be told: what is stored against what the speaker has. Pure. This is the last look at a
 * rule before it becomes a route, and it believes nothing: a speaker that takes a malformed route brings down every
 * session, and one outside protected space would be somebody else's traffic.
 */
import { type BgpRoute, compileRoute, type RouteKey, type RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import type { Refusal, RowAt, StoredFlowrule } from './announced-flowrules.ts';

export interface SpeakerView {
  /** What the attributes of our routes say. */
  readonly ours: ReadonlyMap<RouteKey, string>;
  readonly foreign: ReadonlySet<RouteKey>;
}

export interface RowOfRoute extends RowAt {
  readonly route: BgpRoute;
}

export interface RouteDecisions {
  /** `isNew`: to be noted before; others were announced before and the speaker lost them. */
  readonly announce: readonly (RowOfRoute & { readonly isNew: boolean })[];
  /** The speaker has them, and their rows do not say so yet. */
  readonly confirm: readonly RowAt[];
  readonly withdraw: readonly RouteKey[];
  /** Rows that are free of the speaker when all withdrawals are done. */
  readonly free: readonly RowAt[];
  readonly refuse: readonly Refusal[];
}

/** `rows`: ascending by position. `isWhole`: they are all there are, so that every other route of ours is to go. */
export function decideRoutes(
  rows: readonly StoredFlowrule[],
  { ours, foreign }: SpeakerView,
  options: RouteOptions,
  isWhole: boolean,
): RouteDecisions {
  const announce: (RowOfRoute & { isNew: boolean })[] = [];
  const confirm: RowAt[] = [];
  const refuse: Refusal[] = [];
  const free: RowAt[] = [];
  const ownerOf = new Map<RouteKey, string>();
  const spare = new Set<RouteKey>(isWhole ? ours.keys() : []);
  for (const row of rows) {
    const compiled = compileStored(row, options);
    if (!row.wanted) {
      if (row.applied) free.push(row);
      if (row.applied && compiled.ok) spare.add(compiled.route.key);
      continue;
    }
    const reason = compiled.ok ? whyNot(compiled.route.key, ownerOf, foreign) : compiled.reason;
    if (!compiled.ok || reason !== undefined) {
      if (compiled.ok && row.applied && !ownerOf.has(compiled.route.key)) spare.add(compiled.route.key);
      refuse.push({ uuid: row.uuid, position: row.position, reason: reason ?? '' });
      continue;
    }
    const { route } = compiled;
    ownerOf.set(route.key, row.uuid);
    if (ours.get(route.key) !== route.content) {
      announce.push({ uuid: row.uuid, position: row.position, route, isNew: !row.confirmed });
    } else if (!row.confirmed || row.failure !== null) confirm.push(row);
  }
  const withdraw = [...spare].filter((key) => !ownerOf.has(key));
  return { announce, confirm, withdraw, free, refuse };
}

function whyNot(
  key: RouteKey,
  ownerOf: ReadonlyMap<RouteKey, string>,
  foreign: ReadonlySet<RouteKey>,
): string | undefined {
  const owner = ownerOf.get(key);
  if (owner !== undefined) return `The flowrule ${owner} is the same route.`;
  if (foreign.has(key))
    return 'Another program announces the same route through the BGP speaker; ours would replace it.';
  return undefined;
}

type Judged = ReturnType<typeof compileRoute>;

function compileStored(row: StoredFlowrule, options: RouteOptions): Judged {
  const parsed = parseFlowrule(row.fields);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    return { ok: false, reason: `What is stored is no flowrule: ${first?.message ?? 'it cannot be read'}.` };
  }
  const { dst } = parsed.flowrule;
  const stored = parsePrefix(row.dst);
  const isSame =
    stored.ok &&
    stored.prefix.family === dst.family &&
    stored.prefix.length === dst.length &&
    stored.prefix.value === dst.value;
  if (!isSame) return { ok: false, reason: 'The destination that is stored is not the one of the rule.' };
  // What is to be withdrawn may be outside by now.
  if (row.wanted && !row.isProtected) {
    return { ok: false, reason: `No provider of this installation holds ${parsed.canonical.dst}.` };
  }
  return compileRoute(parsed.flowrule, options);
}
