/**
 * Owns the text of a second table, which keeps connections alive that a SYN proxy has opened, when its filter is gone: their
 * sequence numbers and timestamps differ between client and server, and the router has to go on translating them. It also
 * keeps that translation off the one packet that it spoils (decision 0097). Fixed: packets write into it which servers have
 * such connections. It comes with the first filter that proxies, and stays: whoever is the last one that needs it, no rule
 * can tell (decision 0096).
 * Never decides whether a packet passes.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import { hasSynProxy } from '../filter/filter-kind.ts';
import { standsAt } from './entry-text.ts';

export const proxiedFlowsTable = 'levee_proxied';

/**
 * Before the levee table says which destinations conntrack does not see (-450). A packet that has been given a zone, be it
 * the one it would be in anyway, can no longer be kept from conntrack.
 */
const beforeTracking = -460;

/** Longer than the two hours after which hosts ask whether a silent connection is still there (RFC 9293, 3.8.4). */
const silentSeconds = 3 * 3600;

/** NF_IP_PRI_CONNTRACK is -200; timestamps are translated at the last priority but one (nft_synproxy.c). */
const behindConntrack = -150;
const behindTranslation = 2 ** 31 - 1;

/**
 * The ACK with which the router completes the handshake with the server: in the client's name, where no other packet of the
 * connection is sent from here. It already bears the server's timestamp, which the kernel translates all the same: a
 * server that verifies what comes back (Linux does, lately) refuses the ACK. So the option is disguised, by a kind for
 * experiments (RFC 4727), while translation looks for it. Raw fields leave the checksum as it is, and it ends as it began.
 */
const completesHandshake = 'meta l4proto 6 @th,88,24 & 0x17 == 0x10 ct direction 0 fib saddr type != local';
const optionAt = '@th,160,32';
/** Two octets of filling, kind, length: how the proxy writes it (synproxy_build_options). */
const timestamp = '0x0101080a';
const disguised = '0x0101fd0a';

/** IPS_SEQ_ADJUST of nf_conntrack_common.h; the direction in which the client sends. */
const translatedFromClient = 'ct status & 64 == 64 ct direction 0';

/** Whether the router opens connections to the entry's destination for clients. */
export function opensForClients(entry: Entry): boolean {
  return isFilter(entry) && standsAt(entry, 'forward') && hasSynProxy(entry.kind);
}

/**
 * Commands that may stand before others of a transaction; run again, it leaves what packets have written. The chain that nothing leads to has the kernel
 * translate timestamps as long as it is there. New connections are none of this table's: their SYNs are left alone.
 */
export function proxiedFlowsText(): string {
  const table = `inet ${proxiedFlowsTable}`;
  const families = [
    ['ip', 'served4', 'ipv4_addr'],
    ['ip6', 'served6', 'ipv6_addr'],
  ] as const;
  const chains: [name: string, hook: string, lines: readonly string[]][] = [
    [
      'hook_prerouting',
      `{ type filter hook prerouting priority ${beforeTracking}; policy accept; }`,
      [
        'meta l4proto != 6 accept',
        '@th,88,24 & 0x17 == 0x02 accept',
        ...families.flatMap(([family, set]) =>
          ['daddr', 'saddr'].map((side) => `${family} ${side} @${set} ct zone set 0 accept`),
        ),
      ],
    ],
    [
      'hook_forward',
      '{ type filter hook forward priority 10; policy accept; }',
      families.map(([family, set]) => `${translatedFromClient} update @${set} { ${family} daddr }`),
    ],
    [
      'hook_output',
      `{ type filter hook output priority ${behindConntrack}; policy accept; }`,
      [`${completesHandshake} ${optionAt} ${timestamp} ${optionAt} set ${disguised}`],
    ],
    [
      'hook_postrouting',
      `{ type filter hook postrouting priority ${behindTranslation}; policy accept; }`,
      // What is forwarded came in by a device.
      [`meta iif 0 ${completesHandshake} ${optionAt} ${disguised} ${optionAt} set ${timestamp}`],
    ],
    ['keeper', '', ['meta l4proto 6 synproxy mss 1390 wscale 7 timestamp sack-perm']],
  ];
  return [
    `add table ${table}`,
    ...families.map(
      ([, set, type]) =>
        `add set ${table} ${set} { type ${type}; size 65535; flags dynamic,timeout; timeout ${silentSeconds}s; }`,
    ),
    ...chains.flatMap(([name, hook, lines]) => [
      `add chain ${table} ${name} ${hook}`.trimEnd(),
      `flush chain ${table} ${name}`,
      // In a block: see Transaction.changeText.
      `add chain ${table} ${name} {`,
      ...lines,
      '}',
    ]),
    '',
  ].join('\n');
}
