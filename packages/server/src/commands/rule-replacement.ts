/**
 * Decides, from the rules that a destination has and those that it shall have, which stay, which are created and
 * which go. Pure. Rules of equal priority are evaluated in creation order, and a new rule is always the youngest: so
 * of each priority only a leading part of the wanted rules can stay, as long as it is found in the stored order.
 */

export interface WantedRule {
  readonly priority: number;
  /** Equal for rules that are the same in every field. */
  readonly identity: string;
}

export interface StoredRule extends WantedRule {
  readonly uuid: string;
}

export interface Replacement {
  /** Per wanted rule, in its order: the uuid that stays, or undefined when it is to be created. */
  readonly kept: readonly (string | undefined)[];
  /** uuids */
  readonly removed: readonly string[];
}

/** `stored`: in creation order. */
export function decideReplacement(stored: readonly StoredRule[], wanted: readonly WantedRule[]): Replacement {
  const byPriority = Map.groupBy(stored, (rule) => rule.priority);
  /** Where to look on; undefined: a rule of this priority was not found, the rest of it is new. */
  const next = new Map<number, number | undefined>();
  const staying = new Set<string>();
  const kept = wanted.map(({ priority, identity }) => {
    const from = next.has(priority) ? next.get(priority) : 0;
    if (from === undefined) return undefined;
    const candidates = byPriority.get(priority) ?? [];
    const at = candidates.findIndex((rule, index) => index >= from && rule.identity === identity);
    next.set(priority, at < 0 ? undefined : at + 1);
    const uuid = candidates[at]?.uuid;
    if (uuid !== undefined) staying.add(uuid);
    return uuid;
  });
  return { kept, removed: stored.filter((rule) => !staying.has(rule.uuid)).map((rule) => rule.uuid) };
}
