/** Owns filter kind 29, Web server: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind, fromDescription, to } from '../filter-kind.ts';

export const web: FilterKind = {
  id: 29,
  name: 'web',
  label: 'Web server',
  description:
    'Protects a web server: new TCP connections are answered by SYN cookies and bounded for each source, and UDP ' +
    'is taken for QUIC and held to its form.',
  limits: [
    'Requests are not looked at: a flood of well-formed ones over real connections is for the server or a proxy ' +
      'before it.',
    'Many clients behind one address share its limit.',
    'What is said of tcp-syn-protect and quic holds here too.',
    fromDescription,
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 80), to('tcp', 443), to('udp', 443)],
  memory: 'connection',
  needsReturnPath: true,
};
