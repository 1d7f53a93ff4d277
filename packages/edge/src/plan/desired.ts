/**
 * The desired rules as they came, and which of them can be understood. Owns the step from wire fields to a rule
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
  /** uuids; also those whose new form is not understood, so that no former one stays in force. */
  readonly remove: readonly string[];
}

export interface DesiredRules {
  readonly rules: ReadonlyMap<string, AgentRule>;
  /** Why a rule is not understood, by uuid. */
  readonly unreadable: ReadonlyMap<string, string>;
  set(rule: AgentRule): void;
  delete(uuid: string): void;
  /** What is to be in force of these uuids, as they are now. */
  delta(uuids: Iterable<string>, except?: (uuid: string) => boolean): RuleDelta;
  /** All that is understood. */
  all(except?: (uuid: string) => boolean): Rule[];
  /** The uuids that differ between this state and another one. */
  differences(other: ReadonlyMap<string, AgentRule>): string[];
}

/** Takes `rules` as its own. `knownUnreadable`: what an earlier reading of the same rules found. */
export function createDesiredRules(
  rules: Map<string, AgentRule> = new Map(),
  knownUnreadable: ReadonlyMap<string, string> = new Map(),
): DesiredRules {
  const unreadable = new Map(knownUnreadable);
  const read = (wire: AgentRule): Rule | undefined => {
    const understood = understand(wire);
    if (understood.ok) {
      unreadable.delete(wire.uuid);
      return understood.rule;
    }
    unreadable.set(wire.uuid, understood.reason);
    return undefined;
  };
  return {
    rules,
    unreadable,
    set(rule) {
      rules.set(rule.uuid, rule);
    },
    delete(uuid) {
      rules.delete(uuid);
      unreadable.delete(uuid);
    },
    delta(uuids, except) {
      const upsert: Rule[] = [];
      const remove: string[] = [];
      for (const uuid of uuids) {
        const wire = rules.get(uuid);
        if (wire === undefined) unreadable.delete(uuid);
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
