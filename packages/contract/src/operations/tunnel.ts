/** Operations on tunnels: 17 to 20 of the given interface. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { uuidParams } from '../schemas/list.ts';
import { tunnel, tunnelCreate, tunnelList } from '../schemas/tunnel.ts';

const network = { tag: 'Network', roles: ['provider', 'user'], roleError: 'provider_key_required' } as const;

export const tunnelOperations: readonly Operation[] = [
  {
    ...network,
    id: 'createTunnel',
    number: 17,
    method: 'POST',
    path: '/tunnel',
    summary: 'Create a tunnel',
    access: 'write',
    body: tunnelCreate,
    answer: tunnel,
    errors: ['validation_failed', 'ip_not_allowed', 'conflict'],
    waits: true,
    example: { body: { ips: ['203.0.113.0/28'], endpoint: '198.51.100.9', type: 'GRE' } },
  },
  {
    ...network,
    id: 'listTunnels',
    number: 18,
    method: 'GET',
    path: '/tunnel',
    summary: 'List tunnels',
    access: 'read',
    body: Type.Object({}, { additionalProperties: false }),
    bodyOptional: true,
    answer: tunnelList,
    errors: [],
  },
  {
    ...network,
    id: 'readTunnel',
    number: 19,
    method: 'GET',
    path: '/tunnel/{uuid}',
    summary: 'Read one tunnel',
    access: 'read',
    params: uuidParams,
    answer: Type.Array(tunnel, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...network,
    id: 'deleteTunnel',
    number: 20,
    method: 'DELETE',
    path: '/tunnel/{uuid}',
    summary: 'Delete a tunnel',
    access: 'write',
    params: uuidParams,
    answer: markedForDeletion,
    errors: ['not_found'],
    waits: true,
  },
];
