/** Operations on a provider's users: 13 to 16 of the given interface. */
import type { Operation } from '../operation.ts';
import { message, passwordReset, user, userAfterRemoval, userCreate, userIps } from '../schemas/account.ts';

const provider = {
  method: 'POST',
  tag: 'DDoS Mitigation [Provider]',
  roles: ['provider'],
  roleError: 'provider_key_required',
  access: 'write',
} as const;

export const userOperations: readonly Operation[] = [
  {
    ...provider,
    id: 'createUser',
    number: 13,
    path: '/user',
    summary: 'Create a user',
    description: "`ips` lie inside the provider's prefixes; a subnet belongs to at most one user of the installation.",
    body: userCreate,
    answer: user,
    errors: ['validation_failed', 'ip_not_allowed', 'conflict', 'quota_exceeded'],
    example: {
      body: {
        username: 'alice',
        email: 'alice@example.net',
        password: 'correct-horse-battery-staple',
        ips: ['203.0.113.0/28'],
        name: 'Alice',
      },
    },
  },
  {
    ...provider,
    id: 'addUserIps',
    number: 14,
    path: '/user/add-ips',
    summary: 'Add allowed IPs to a user',
    body: userIps,
    answer: user,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found', 'conflict'],
    example: { body: { user_uuid: '01890a5d-ac96-774b-bcce-b302099a8057', ips: ['203.0.113.16/28'] } },
  },
  {
    ...provider,
    id: 'deleteUserIps',
    number: 15,
    path: '/user/delete-ips',
    summary: 'Remove allowed IPs of a user',
    description: "Marks every object of the user's for deletion that only the removed subnets allowed.",
    body: userIps,
    answer: userAfterRemoval,
    errors: ['validation_failed', 'not_found'],
    example: { body: { user_uuid: '01890a5d-ac96-774b-bcce-b302099a8057', ips: ['203.0.113.16/28'] } },
  },
  {
    ...provider,
    id: 'resetUserPassword',
    number: 16,
    path: '/user/reset-password',
    summary: "Reset a user's password",
    body: passwordReset,
    answer: message,
    errors: ['validation_failed', 'not_found'],
    example: { body: { email: 'alice@example.net', password: 'correct-horse-battery-staple' } },
  },
];
