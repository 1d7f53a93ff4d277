/** Owns filter kind 22, DNS server: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const dns: FilterKind = {
  id: 22,
  name: 'dns',
  label: 'DNS server',
  description:
    'Passes DNS questions over UDP: a standard query with exactly one question and no answer or authority records.',
  limits: [
    copiesPass,
    'Floods of well-formed questions, for random names too, pass within the limits.',
    'NOTIFY, dynamic updates and incremental transfers over UDP are discarded: let them through by a rule that ' +
      "accepts the peer's address.",
    'DNS over TCP, TLS, HTTPS and QUIC is not looked at.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 53)],
  memory: 'none',
  needsReturnPath: false,
};
