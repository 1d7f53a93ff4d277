/** Owns filter kind 24, DTLS: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind } from '../filter-kind.ts';

export const dtls: FilterKind = {
  id: 24,
  name: 'dtls',
  label: 'DTLS',
  description: 'Passes records of DTLS 1.0 to 1.2: a known content type followed by a version of the protocol.',
  limits: [
    'Weak: three bytes are all there is to recognise.',
    copiesPass,
    'DTLS 1.3 is recognised in its first flight only: its encrypted records have another form and are discarded.',
    'It has no port of its own: port.dst must say where it is spoken.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'required',
  defaultPorts: [],
  memory: 'none',
  needsReturnPath: false,
};
