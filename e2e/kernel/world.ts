/**
 * The small world of the kernel tests: few addresses, ports and lengths, so that random rules and random packets meet
 * often and at their edges. Owns the values; must never hold a rule or a packet.
 */
import { parseAddress } from '@levee/core/net/address.ts';
import type { Family, Prefix } from '@levee/core/net/prefix.ts';

function value(text: string): bigint {
  const parsed = parseAddress(text);
  if (!parsed.ok) throw new Error(parsed.sentence);
  return parsed.address.value;
}

/** What the router forwards to the customer. */
export const protectedPrefixes = ['10.16.0.0/12', '203.0.113.0/24', '2001:db8::/32'] as const;

/** Protected hosts; they share prefixes of many lengths. */
export const hosts: Readonly<Record<Family, readonly bigint[]>> = {
  4: [
    '10.16.0.1',
    '10.16.0.2',
    '10.16.0.128',
    '10.16.1.1',
    '10.17.3.4',
    '10.24.9.9',
    '203.0.113.7',
    '203.0.113.200',
  ].map(value),
  6: ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::5', '2001:db8:1::1', '2001:db8:1:2:3:4:5:6', '2001:db8:8000::9'].map(
    value,
  ),
};

export const prefixLengths: Readonly<Record<Family, readonly number[]>> = {
  4: [0, 8, 12, 13, 16, 20, 23, 24, 25, 28, 30, 31, 32, 32, 32],
  6: [0, 16, 32, 33, 44, 48, 56, 63, 64, 96, 120, 126, 127, 128, 128, 128],
};

/** Inside this prefix, and nowhere else, rules look at connections; its packets belong to modelled flows. */
export const trackedZone: Readonly<Record<Family, Prefix>> = {
  4: { family: 4, value: value('10.31.0.0'), length: 16 },
  6: { family: 6, value: value('2001:db8:ffff::'), length: 48 },
};

export const trackedHosts: Readonly<Record<Family, readonly bigint[]>> = {
  4: ['10.31.0.1', '10.31.0.2', '10.31.200.1'].map(value),
  6: ['2001:db8:ffff::1', '2001:db8:ffff::2', '2001:db8:ffff:9::1'].map(value),
};

/** Senders, all on the attacker's side of the router. */
export const sources: Readonly<Record<Family, readonly bigint[]>> = {
  4: ['100.64.0.1', '100.64.0.2', '100.64.0.77', '100.64.1.1', '100.127.255.254', '198.51.100.9'].map(value),
  6: ['fd77::1', 'fd77::2', 'fd77::4d', 'fd77:0:0:1::1', 'fd78::1', '2001:db9::1'].map(value),
};

/** Where flows come from: apart from the sources, so that no random packet belongs to a flow. */
export const flowSources: Readonly<Record<Family, bigint>> = { 4: value('100.80.0.0'), 6: value('fd79::') };

export const ports = [0, 1, 53, 80, 123, 443, 1023, 1024, 27015, 65535] as const;
export const tcpFlagSets = [0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0x00, 0xff, 0x29, 0xc2, 0x42] as const;
/** Of the wire, so that `totalLength` can meet a rule's; the largest fits the wires' MTU. */
export const lengths = [40, 48, 60, 61, 100, 576, 1280, 1500, 9000] as const;
export const wireMtu = 9216;
