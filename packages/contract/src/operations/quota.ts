/** Quotas of accounts: set and read by whoever runs the installation; the account reads its own in `GET /whoami`. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { accountQuota, quotaSet } from '../schemas/quota.ts';

const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;
const params = Type.Object({ account_uuid: Type.String({ description: 'A provider, or a user of one.' }) });

export const quotaOperations: readonly Operation[] = [
  {
    ...operator,
    id: 'readQuota',
    method: 'GET',
    path: '/operator/quota/{account_uuid}',
    summary: "Read an account's quotas and how much of them is used",
    description: 'A kind without a quota is left out.',
    access: 'read',
    params,
    answer: accountQuota,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...operator,
    id: 'setQuota',
    method: 'PUT',
    path: '/operator/quota/{account_uuid}',
    summary: 'Set how many objects an account may hold',
    description:
      'The body is the whole of it: a kind that is null or absent is without a quota from then on. A maximum below what ' +
      'is used takes nothing away; it only lets nothing be added. A provider and its users are bound by both: the ' +
      "user's own quotas and the provider's, which count everything of all of its users. What is being created at the " +
      'very moment at which a quota is set may still come on top.',
    access: 'write',
    params,
    body: quotaSet,
    answer: accountQuota,
    errors: ['validation_failed', 'not_found'],
    example: { body: { firewall_rules: 10000, filters: 200, tunnels: 20, users: 50 } },
  },
];
