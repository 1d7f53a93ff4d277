/** The BGP speaker: seen by whoever runs the installation. */
import type { Operation } from '../operation.ts';
import { bgpSpeaker } from '../schemas/speaker.ts';

export const speakerOperations: readonly Operation[] = [
  {
    tag: 'operator',
    roles: ['operator'],
    roleError: 'operator_key_required',
    id: 'readSpeaker',
    method: 'GET',
    path: '/operator/speaker',
    summary: 'Read how the BGP speaker does',
    description:
      'Whether it is reached, since when and why not, its peers, and how many routes it has. It is looked at every few ' +
      'seconds, and at once when something happens.',
    access: 'read',
    answer: bgpSpeaker,
    errors: [],
  },
];
