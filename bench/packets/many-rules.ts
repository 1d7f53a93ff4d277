/** A hundred thousand rules over ten thousand destinations, as benchmarks of packets load them. No packet matches one. */
import type { Rule } from '@levee/core/firewall/rule.ts';
import type { Address } from '@levee/core/net/prefix.ts';

export const destinations = 10_000;
export const rulesPerDestination = 10;
/** All destinations lie inside. */
export const protectedPrefixes = ['10.16.0.0/12', '2001:db8::/32'];

export function destinationOf(family: Address['family'], index: number): bigint {
  // A prime's multiples scatter the destinations over the prefix, as customers' addresses are.
  const scattered = BigInt((index * 7919) % 1_048_573);
  return family === 4 ? 0x0a100000n + scattered : (0x20010db8n << 96n) + (scattered << 64n) + 1n;
}

/** Other ports in every destination's rules: no two chains are alike, nothing can be shared. */
export function portOf(index: number, rule: number): number {
  return 1024 + ((index * 31 + rule * 4801) % 20_000);
}

export function manyRules(family: Address['family']): Rule[] {
  const rules: Rule[] = [];
  for (let index = 0; index < destinations; index++) {
    const dst = { family, value: destinationOf(family, index), length: family === 4 ? 32 : 128 };
    for (let number = 0; number < rulesPerDestination; number++) {
      const sequence = rules.length + 1;
      const port = portOf(index, number);
      rules.push({
        uuid: `01900000-0000-7000-8000-${sequence.toString(16).padStart(12, '0')}`,
        sequence,
        priority: 1000,
        dst,
        protocol: number % 2 === 0 ? 'udp' : 'tcp',
        action: 'drop',
        sourcePorts: { start: port, end: port },
        disabled: false,
      });
    }
  }
  return rules;
}
