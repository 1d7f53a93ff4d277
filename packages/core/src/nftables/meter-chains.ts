/**
 * Owns how a filter's lines ask its meters. What a kind writes as one condition before a discard takes several lines in the
 * kernel: it becomes a jump to the meter's own chain, from which who is within returns. A meter that tells nobody apart, because
 * the filter protects one address and the meter is the address's, does without a set: its bucket is in a line. The kernel
 * finds sets by walking along all names (decision 0026), and reads a limit in a line for nothing.
 * Never changes what a meter bounds.
 */
import type { OwnChain } from './rule-text.ts';

/**
 * `condition`: as lines write it; no word of nft's. `chain`: a name for its own. Either `plain`, the same condition without a
 * set, or `lines` of the chain.
 */
export type AskedMeter = {
  readonly condition: string;
  readonly set: string;
  readonly chain: string;
} & ({ readonly plain: string } | { readonly lines: readonly string[] });

/** `gone`: names of the sets that no line asks for any more. Throws where a condition has no discard behind it. */
export function withMeterChains(
  chains: readonly OwnChain[],
  meters: readonly AskedMeter[],
  discard: string,
): { readonly chains: readonly OwnChain[]; readonly gone: ReadonlySet<string> } {
  const gone = new Set<string>();
  let present = chains;
  for (const meter of meters) {
    const { condition, set, chain } = meter;
    const asked = `${condition} ${discard}`;
    const asking = present.flatMap(({ lines }) => lines.filter((line) => line.split(' ').includes(condition)));
    const astray = asking.find((line) => !line.endsWith(asked));
    if (astray !== undefined) throw new Error(`behind ${condition} nothing but a discard may stand: ${astray}`);
    if ('plain' in meter) gone.add(set);
    if (asking.length === 0) continue;
    if ('plain' in meter && asking.length === 1) {
      present = replaced(present, asked, `${meter.plain} ${discard}`);
      continue;
    }
    const lines = 'plain' in meter ? [`${meter.plain} ${discard}`] : meter.lines;
    present = [...replaced(present, asked, `jump ${chain}`), { name: chain, lines, counted: false }];
  }
  return { chains: present, gone };
}

function replaced(chains: readonly OwnChain[], from: string, to: string): OwnChain[] {
  const change = (line: string) => (line.endsWith(from) ? `${line.slice(0, -from.length)}${to}` : line);
  return chains.map((chain) => ({ ...chain, lines: chain.lines.map(change) }));
}
