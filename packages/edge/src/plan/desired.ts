/**
 * The desired rules as they came, and which of them this router can enforce. Owns the step from wire fields to a rule
 * (through core's parser) and the difference between two desired states; decides nothing about the kernel.
 */
import type { AgentRule } from '@levee/contract/agent.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';

export type Understood = { readonly ok: true; readonly rule: Rule } | { readonly ok: false; readonly reason: string };

export function understand(wire: AgentRule): Understood {
  const { uuid, sequence, ...fields } = wire;
  const parsed = parseRule(fields, { uuid, sequence });
  if (parsed.ok) return { ok: true, rule: parsed.rule };
  return { ok: false, reason: parsed.problems.map(({ message }) => message).join('; ') };
}

export interface RuleDelta {
  readonly upsert: readonly Rule[];
  /** uuids; also those whose new form is left out, so that no former one stays in force. */
  readonly remove: readonly string[];
}

export interface DesiredRules {
  readonly rules: ReadonlyMap<string, AgentRule>;
  /** Why a rule is left out, by uuid: it is not understood, or it is beyond this router. */
  readonly leftOut: ReadonlyMap<string, string>;
  set(rule: AgentRule): void;
  delete(uuid: string): void;
  /** What is to be in force of these uuids, as they are now. */
  delta(uuids: Iterable<string>, except?: (uuid: string) => boolean): RuleDelta;
  /** All that can be enforced. */
  all(except?: (uuid: string) => boolean): Rule[];
  /** The uuids that differ between this state and another one. */
  differences(other: ReadonlyMap<string, AgentRule>): string[];
}

/** Why a rule that is understood cannot be enforced by this router, as one line for its operator. */
export type Obstacle = (rule: Rule) => string | undefined;

/** Takes `rules` as its own. `knownLeftOut`: what an earlier reading of the same rules found. */
export function createDesiredRules(
  obstacle: Obstacle,
  rules: Map<string, AgentRule> = new Map(),
  knownLeftOut: ReadonlyMap<string, string> = new Map(),
): DesiredRules {
  const leftOut = new Map(knownLeftOut);
  const read = (wire: AgentRule): Rule | undefined => {
    const understood = understand(wire);
    const reason = understood.ok ? obstacle(understood.rule) : understood.reason;
    if (reason !== undefined) leftOut.set(wire.uuid, reason);
    else leftOut.delete(wire.uuid);
    return understood.ok && reason === undefined ? understood.rule : undefined;
  };
  return {
    rules,
    leftOut,
    set(rule) {
      rules.set(rule.uuid, rule);
    },
    delete(uuid) {
      rules.delete(uuid);
      leftOut.delete(uuid);
    },
    delta(uuids, except) {
      const upsert: Rule[] = [];
      const remove: string[] = [];
      for (const uuid of uuids) {
        const wire = rules.get(uuid);
        if (wire === undefined) leftOut.delete(uuid);
        const rule = wire && !except?.(uuid) ? read(wire) : undefined;
        if (rule) upsert.push(rule);
        else remove.push(uuid);
      }
      return { upsert, remove };
    },
    all(except) {
      const all: Rule[] = [];
      for (const wire of rules.values()) {
        const rule = except?.(wire.uuid) ? undefined : read(wire);
        if (rule) all.push(rule);
      }
      return all;
    },
    differences(other) {
      const different: string[] = [];
      for (const [uuid, wire] of other) {
        const own = rules.get(uuid);
        if (own === undefined || !isSame(own, wire)) different.push(uuid);
      }
      for (const uuid of rules.keys()) if (!other.has(uuid)) different.push(uuid);
      return different;
    },
  };
}

/** Both are canonical, with their fields in one order; a false difference costs a recompilation, nothing else. */
const isSame = (a: AgentRule, b: AgentRule): boolean => JSON.stringify(a) === JSON.stringify(b);
