/** The audit log: an extension. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { auditEntry, auditQuery } from '../schemas/audit.ts';

export const auditOperations: readonly Operation[] = [
  {
    id: 'listAudit',
    method: 'GET',
    path: '/audit',
    tag: 'extension',
    summary: 'List who did what to which object, from where',
    description:
      'Every operation that changes something leaves an entry an object, in the same transaction; so does what the ' +
      'service does of its own (expiry, the undoing of unconfirmed changes). An operator sees all of them; a provider ' +
      "what was done to its own and its users' objects, and by them; a user what was done to its own objects, also by " +
      'its provider, and by itself. Oldest first, complete unless `limit` is given. Nothing ever comes to stand before ' +
      'an entry that was shown: an entry shows as soon as all that was under way before it has ended, usually at once, so ' +
      'that whoever asks on with `after` misses none. Entries are kept for as long as the installation is set to, a year ' +
      'as delivered.',
    roles: ['operator', 'provider', 'user'],
    roleError: 'provider_key_required',
    access: 'read',
    query: auditQuery,
    answer: Type.Array(auditEntry),
    errors: ['validation_failed'],
  },
];
