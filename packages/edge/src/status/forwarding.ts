/**
 * Whether this network namespace forwards packets at all: without it nothing reaches the protected destinations, and no tunnel
 * carries anything (ip-sysctl, kernel documentation).
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface Forwarding {
  readonly ipv4: boolean;
  readonly ipv6: boolean;
}

/**
 * On where it is on for one device at least: IPv4 asks the one that a packet came by, and so does IPv6 where the kernel knows
 * `force_forwarding`. Read with this thread, because others may be in another namespace.
 */
export function readForwarding(directory = '/proc/sys/net'): Forwarding {
  return {
    ipv4: isSet(`${directory}/ipv4/ip_forward`) || isSetForOne(`${directory}/ipv4/conf`, 'forwarding'),
    ipv6: isSet(`${directory}/ipv6/conf/all/forwarding`) || isSetForOne(`${directory}/ipv6/conf`, 'force_forwarding'),
  };
}

/** `IPv4`, `IPv6`: what is not forwarded. */
export function notForwarded({ ipv4, ipv6 }: Forwarding): readonly string[] {
  return [...(ipv4 ? [] : ['IPv4']), ...(ipv6 ? [] : ['IPv6'])];
}

function isSetForOne(directory: string, name: string): boolean {
  return namesIn(directory).some((device) => !isGeneral.test(device) && isSet(`${directory}/${device}/${name}`));
}

/** Of all, of new ones, and of the one that nothing is forwarded from. */
const isGeneral = /^(?:all|default|lo)$/;

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isSet(path: string): boolean {
  try {
    return readFileSync(path, 'utf8').trim() !== '0';
  } catch {
    return false;
  }
}
