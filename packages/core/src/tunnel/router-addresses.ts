/**
 * Owns the reading of the addresses at which a router ends tunnels. Never asks who else has them: that is the
 * database's to decide.
 */
import { formatAddress } from '../net/address.ts';
import { readAddress } from '../net/read.ts';
import { specialPurposeOf } from '../net/special-purpose.ts';
import { type Problem, problem } from '../problem.ts';

export type ParsedTunnelAddresses =
  /** Canonical, in the order given; at most one a family. */
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const field = 'tunnel_addresses';
const families = 2;

/**
 * `given`: elements of any type. Only public addresses: it is where customers send to across the internet, and what stands in the
 * configurations that they are given.
 */
export function parseTunnelAddresses(given: readonly unknown[]): ParsedTunnelAddresses {
  const problems: Problem[] = [];
  const byFamily = new Map<number, string>();
  // One more than are allowed: that there are too many is the schema's to say.
  for (const [index, text] of given.slice(0, families + 1).entries()) {
    const read = readAddress(text, [field, index], problems);
    if (read === undefined) continue;
    const special = specialPurposeOf(read);
    if (special !== undefined) {
      const sentence =
        `${formatAddress(read)} is ${special}; it must be a public unicast address of the router itself, to which ` +
        'customers can send (a router behind address translation cannot end tunnels)';
      problems.push(problem([field, index], 'not_public', sentence));
    } else if (byFamily.has(read.family)) {
      const sentence = `is a second IPv${read.family} address; at most one a family`;
      problems.push(problem([field, index], 'duplicate', sentence));
    } else {
      byFamily.set(read.family, formatAddress(read));
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, addresses: [...byFamily.values()] };
}
