/** What measures against an attack are, as values: routes, rules, and what is said about them. Owns the shapes; decides nothing. */
import type { CanonicalRule } from '../firewall/wire.ts';
import type { CanonicalFlowrule } from '../flowspec/flowrule.ts';

/** In the order in which a policy goes up. */
export const mitigations = ['observe', 'edge', 'flowspec', 'rtbh'] as const;
export type Mitigation = (typeof mitigations)[number];

/** What keeps a flowrule from being announced. */
export type HeldBy = 'policy' | 'accept' | 'budget';

export interface FlowMeasure {
  /** `vector: what of it`; the same for the same aim, whatever its figures: by it a withdrawn one is known again. */
  readonly purpose: string;
  readonly canonical: CanonicalFlowrule;
  readonly held?: { readonly by: HeldBy; readonly reason: string; readonly ruleUuid?: string } | undefined;
  /** Uuids of flowrules of other attacks that this wider one stands in for. */
  readonly replaces?: readonly string[];
}

export interface EdgeMeasure {
  readonly purpose: string;
  readonly canonical: CanonicalRule;
}

/** What could not be said there, and what is done instead. */
export interface MeasureNote {
  readonly vector: string;
  readonly where: 'edge' | 'flowspec';
  readonly text: string;
}

export interface Measures {
  readonly flowrules: readonly FlowMeasure[];
  readonly edge: readonly EdgeMeasure[];
  readonly notes: readonly MeasureNote[];
  /** Measures that were left out because they are no flowrule or no rule, and why: mistakes of who decides. */
  readonly faults: readonly string[];
  /** What the flowrules are certain to catch of each vector, 0 … 1. */
  readonly coverage: Readonly<Record<string, number>>;
}

export function vectorOfPurpose(purpose: string): string {
  return purpose.slice(0, Math.max(0, purpose.indexOf(':')));
}
