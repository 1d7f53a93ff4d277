/**
 * Owns which meters of a filter do without a set: those that tell nobody apart, because the filter protects one address and
 * the meter is the address's. A line has the bucket itself; of several, a chain that they jump to. The kernel finds sets by
 * walking along all names (decision 0026), and reads a limit in a line for nothing.
 * Never changes what a meter bounds.
 */
import type { OwnChain } from './rule-text.ts';

/** As lines ask for it; `plain`: the same without its set. `chain`: a name for its own, if it needs one. */
export interface PlainMeter {
  readonly set: string;
  readonly statement: string;
  readonly plain: string;
  readonly chain: string;
}

/** `gone`: names of the sets that no line asks for any more. */
export function withPlainMeters(
  chains: readonly OwnChain[],
  meters: readonly PlainMeter[],
  discard: string,
): { readonly chains: readonly OwnChain[]; readonly gone: ReadonlySet<string> } {
  const gone = new Set<string>();
  let present = chains;
  for (const { set, statement, plain, chain } of meters) {
    const asking = present.flatMap(({ lines }) => lines.filter((line) => line.includes(statement)));
    if (asking.length <= 1) present = replaced(present, statement, plain);
    else if (asking.every((line) => line === `${statement} ${discard}`)) {
      const own = { name: chain, lines: [`${plain} ${discard}`], counted: false };
      present = [...replaced(present, `${statement} ${discard}`, `jump ${chain}`), own];
    } else continue;
    gone.add(set);
  }
  return { chains: present, gone };
}

function replaced(chains: readonly OwnChain[], from: string, to: string): OwnChain[] {
  return chains.map((chain) => ({ ...chain, lines: chain.lines.map((line) => line.replace(from, () => to)) }));
}
