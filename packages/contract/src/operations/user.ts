/** Operations on a provider's users: 13 to 16 of the given interface, and reading and deleting them. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import {
  message,
  passwordReset,
  user,
  userAfterRemoval,
  userCreate,
  userDeleted,
  userGranted,
  userIps,
  userListQuery,
} from '../schemas/account.ts';
import { uuidParams } from '../schemas/list.ts';

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
    description:
      "`ips` lie inside the provider's prefixes; a subnet belongs to at most one user of the installation. What the " +
      'provider itself has on them stays: `warnings` names it.',
    body: userCreate,
    answer: userGranted,
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
    description:
      'They take effect at once. Answers with the user as it now is, and with `warnings` of what the provider itself has ' +
      'on those addresses: it stays.',
    body: userIps,
    answer: userGranted,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found', 'conflict'],
    example: { body: { user_uuid: '01890a5d-ac96-774b-bcce-b302099a8057', ips: ['203.0.113.16/28'] } },
  },
  {
    ...provider,
    id: 'deleteUserIps',
    number: 15,
    path: '/user/delete-ips',
    summary: 'Remove allowed IPs of a user',
    description:
      "Takes whole subnets or parts of them; of a part the rest stays. Every object of the user's that stands on what was " +
      'removed is marked for deletion, whether it covers all of it or only touches it; a tunnel keeps its other subnets. ' +
      'The addresses can be given to another user at once. An address that the user does not hold is an error, and then ' +
      'nothing is removed.',
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
    description: "The user is found by email among the provider's own.",
    body: passwordReset,
    answer: message,
    errors: ['validation_failed', 'not_found'],
    example: { body: { email: 'alice@example.net', password: 'correct-horse-battery-staple' } },
  },
  {
    ...provider,
    id: 'listUsers',
    method: 'GET',
    path: '/user',
    tag: 'extension',
    summary: "List the provider's users",
    description: 'With the subnets that each may act on; those that are marked for deletion too, until they are gone.',
    access: 'read',
    query: userListQuery,
    answer: Type.Array(user),
    errors: ['validation_failed'],
  },
  {
    ...provider,
    id: 'readUser',
    method: 'GET',
    path: '/user/{uuid}',
    tag: 'extension',
    summary: 'Read one user',
    description:
      'Answers the user itself, as its creation does, not an array. One that was deleted is shown as ' +
      '`marked_for_deletion` until it is gone.',
    access: 'read',
    params: uuidParams,
    answer: user,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...provider,
    id: 'deleteUser',
    method: 'DELETE',
    path: '/user/{uuid}',
    tag: 'extension',
    summary: 'Delete a user',
    description:
      "At once its keys are void, its username and email are free, its addresses the provider's to give to another, and " +
      'all its objects are marked for deletion. Until the last of its objects is gone everywhere it is shown as ' +
      '`marked_for_deletion`, and deleting it again answers the same with nothing more to remove; then the account itself ' +
      "goes. Attacks on it stay on record, as the provider's.",
    access: 'write',
    params: uuidParams,
    answer: userDeleted,
    errors: ['not_found'],
  },
];
