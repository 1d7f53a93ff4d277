/** Extensions about the caller and the service itself: keys, who am I, the interface's own description. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { apiKey, apiKeyCreate, apiKeyCreated, apiKeyRevoked, whoami } from '../schemas/account.ts';
import { uuidParams } from '../schemas/list.ts';

const anyone = {
  tag: 'extension',
  roles: ['operator', 'provider', 'user'],
  roleError: 'provider_key_required',
} as const;

export const serviceOperations: readonly Operation[] = [
  {
    ...anyone,
    id: 'createApiKey',
    method: 'POST',
    path: '/api-key',
    summary: 'Issue an API key',
    description:
      'An operator for any account, a provider for itself and its users, a user for itself. A key that is limited makes ' +
      'none that is wider: not ending later, from no other `sources`, for no other `operations`, and, but for an ' +
      'operator, with no higher `rate_limit`.',
    access: 'write',
    body: apiKeyCreate,
    answer: apiKeyCreated,
    errors: ['validation_failed', 'not_found', 'quota_exceeded'],
    example: { body: { name: 'deploy', read_only: true, sources: ['198.51.100.0/24'] } },
  },
  {
    ...anyone,
    id: 'listApiKeys',
    method: 'GET',
    path: '/api-key',
    summary: "List an account's API keys",
    description: 'What each may do and when it was last used, revoked ones too; never the key itself.',
    access: 'read',
    query: Type.Object(
      {
        account_uuid: Type.Optional(Type.String({ format: 'uuid', description: "Whose; absent: the caller's own." })),
      },
      { additionalProperties: false },
    ),
    answer: Type.Array(apiKey),
    errors: ['validation_failed', 'not_found'],
  },
  {
    ...anyone,
    id: 'revokeApiKey',
    method: 'DELETE',
    path: '/api-key/{uuid}',
    summary: 'Revoke an API key',
    description:
      'It stops working everywhere within one second. Revoking twice is no error. The last operator key stays.',
    access: 'write',
    params: uuidParams,
    answer: apiKeyRevoked,
    errors: ['not_found', 'conflict'],
  },
  {
    ...anyone,
    id: 'whoAmI',
    method: 'GET',
    path: '/whoami',
    summary: 'Say whose key this is and what it may do',
    description: "For programs that want to know what they were given: the account, its subnets, the key's limits.",
    access: 'read',
    answer: whoami,
    errors: [],
  },
  {
    ...anyone,
    id: 'readOpenapi',
    method: 'GET',
    path: '/openapi.json',
    summary: 'The OpenAPI document of what this service serves',
    description: 'The same without a key: `/docs/openapi.json`, and for people `/docs`.',
    access: 'read',
    answer: Type.Object({ openapi: Type.String() }, { additionalProperties: true }),
    errors: [],
    entityTag: true,
    // Itself would be without end.
    example: {
      answer: { openapi: '3.1.0', info: { title: 'Network protection management service', version: '1.0.0' } },
    },
  },
];
