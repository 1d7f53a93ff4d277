/** Operations on reverse DNS: 21 to 23 of the given interface. */
import type { Operation } from '../operation.ts';
import { rdnsDelete, rdnsRecord, rdnsWrite } from '../schemas/rdns.ts';

const network = { tag: 'Network', roles: ['provider', 'user'], roleError: 'provider_key_required' } as const;
const rdnsExample = { ips: '203.0.113.7', record: 'mail.example.net' };

export const rdnsOperations: readonly Operation[] = [
  {
    ...network,
    id: 'createRdns',
    number: 21,
    method: 'POST',
    path: '/rdns',
    summary: 'Create an rDNS record',
    access: 'write',
    body: rdnsWrite,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'conflict'],
    waits: true,
    example: { body: rdnsExample },
  },
  {
    ...network,
    id: 'updateRdns',
    number: 22,
    method: 'PUT',
    path: '/rdns',
    summary: 'Update an rDNS record',
    access: 'write',
    body: rdnsWrite,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found'],
    waits: true,
    example: { body: rdnsExample },
  },
  {
    ...network,
    id: 'deleteRdns',
    number: 23,
    method: 'DELETE',
    path: '/rdns',
    summary: 'Delete an rDNS record',
    access: 'write',
    body: rdnsDelete,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found'],
    waits: true,
    example: { body: { ips: '203.0.113.7' } },
  },
];
