/** Profiles of attacks for tests: what is not given is of a flood of 100 000 packets of 500 octets a second. Test code only. */
import type { VectorProfile } from '@levee/contract/detector.ts';

export function profileOf(vector: string, more: Partial<VectorProfile> = {}): VectorProfile {
  const pps = more.pps ?? 100_000;
  return {
    vector,
    pps,
    bps: pps * 500 * 8,
    peak_pps: pps,
    peak_bps: pps * 500 * 8,
    samples: 1000,
    protocols: [],
    source_ports: [],
    destination_ports: [],
    icmp: [],
    tcp_flags: [],
    length: { min: 200, p5: 220, max: 1400 },
    later_fragments: 0,
    sources: [],
    distinct_sources: 990,
    destinations: [],
    ...more,
  };
}
