/**
 * Decides what a speaker is to be told: what is stored against what the speaker has. Pure. This is the last look at a
 * rule before it becomes a route, and it believes nothing: a speaker that takes a malformed route brings down every
 * session, and one outside protected space would be somebody else's traffic.
 */
import { type BgpRoute, compileRoute, type RouteKey, type RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import type { Refusal, RowAt, StoredFlowrule } from './announced-flowrules.ts';
import type { WithdrawnRoute } from './port.ts';

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
  /** Never one that another program announces. */
  readonly withdraw: readonly WithdrawnRoute[];
  /** Rows that are free of the speaker when all withdrawals are done. */
  readonly free: readonly RowAt[];
  readonly refuse: readonly Refusal[];
  /** Some are refused for as long as another program announces their routes. */
  readonly areBlocked: boolean;
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
  const spare = new Map<RouteKey, WithdrawnRoute>();
  let areBlocked = false;
  if (isWhole) for (const key of ours.keys()) spare.set(key, { key });
  for (const row of rows) {
    const judged = compileStored(row, options);
    if (!row.wanted) {
      if (row.applied) free.push(row);
      if (row.applied && judged.route !== undefined) spare.set(judged.route.key, judged.route);
      continue;
    }
    const reason = judged.unfit ?? whyNot(judged.route.key, ownerOf, foreign);
    if (judged.unfit !== undefined || reason !== undefined) {
      if (row.applied && judged.route !== undefined) spare.set(judged.route.key, judged.route);
      if (reason === blocked) areBlocked = true;
      refuse.push({ uuid: row.uuid, position: row.position, reason: reason ?? '' });
      continue;
    }
    const { route } = judged;
    ownerOf.set(route.key, row.uuid);
    if (ours.get(route.key) !== route.content) {
      announce.push({ uuid: row.uuid, position: row.position, route, isNew: !row.confirmed });
    } else if (!row.confirmed || row.failure !== null) confirm.push(row);
  }
  const withdraw = [...spare.values()].filter(({ key }) => !ownerOf.has(key) && !foreign.has(key));
  return { announce, confirm, withdraw, free, refuse, areBlocked };
}

/** What the speaker is to be asked of before anything is decided on these rows. */
export function keysOf(rows: readonly StoredFlowrule[], options: RouteOptions): RouteKey[] {
  return [...new Set(rows.flatMap((row) => compileStored(row, options).route?.key ?? []))];
}

const blocked =
  'Another program announces the same route through the BGP speaker, and ours would replace it: it is announced once the other is gone.';

function whyNot(
  key: RouteKey,
  ownerOf: ReadonlyMap<RouteKey, string>,
  foreign: ReadonlySet<RouteKey>,
): string | undefined {
  const owner = ownerOf.get(key);
  if (owner !== undefined) return `The flowrule ${owner} is the same route.`;
  return foreign.has(key) ? blocked : undefined;
}

/** `unfit`: why it must not be announced. A route beside it is there to be withdrawn. */
type Judged =
  | { readonly route: BgpRoute; readonly unfit?: undefined }
  | { readonly route?: BgpRoute; readonly unfit: string };

function compileStored(row: StoredFlowrule, options: RouteOptions): Judged {
  const parsed = parseFlowrule(row.fields);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    return { unfit: `What is stored is no flowrule: ${first?.message ?? 'it cannot be read'}.` };
  }
  const { dst } = parsed.flowrule;
  const stored = parsePrefix(row.dst);
  const isSame =
    stored.ok &&
    stored.prefix.family === dst.family &&
    stored.prefix.length === dst.length &&
    stored.prefix.value === dst.value;
  if (!isSame) return { unfit: 'The destination that is stored is not the one of the rule.' };
  const compiled = compileRoute(parsed.flowrule, options);
  if (!compiled.ok) return { unfit: compiled.reason };
  const { route } = compiled;
  if (row.isProtected) return { route };
  return { route, unfit: `No provider of this installation holds ${parsed.canonical.dst}.` };
}
