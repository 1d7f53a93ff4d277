/** Operations on tunnels: 17 to 20 of the given interface and their extensions. */
import Type from 'typebox';
import type { Operation, Role } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { uuidParams } from '../schemas/list.ts';
import {
  providerTunnelListQuery,
  tunnel,
  tunnelConfigQuery,
  tunnelCreate,
  tunnelList,
  tunnelListQuery,
  tunnelPatch,
} from '../schemas/tunnel.ts';

const holders: readonly Role[] = ['provider', 'user'];
const network = { tag: 'Network', roles: holders, roleError: 'provider_key_required' } as const;
const extension = { tag: 'extension', roles: holders, roleError: 'provider_key_required' } as const;

const exampleTunnel = { ips: ['203.0.113.0/28'], endpoint: '198.51.100.9', type: 'GRE' };

export const tunnelOperations: readonly Operation[] = [
  {
    ...network,
    id: 'createTunnel',
    number: 17,
    method: 'POST',
    path: '/tunnel',
    summary: 'Create a tunnel',
    description:
      'Every router in scope that has a tunnel address of the family of `endpoint` gets an end of its own: key or VNI and ' +
      'inner addresses in `tunnel_information` are what the other end has to be set to, and stay for as long as the tunnel ' +
      'does. Without `locations` routers that are added later get an end too. With them each must have such a router now, ' +
      'and not only such as have reported that they cannot end the type (409 otherwise, which says why); without them a ' +
      'tunnel that no router can serve is stored, and its state says why. ' +
      'The endpoint may lie inside what another tunnel routes: packets go into that one then, and those of this tunnel have ' +
      'to fit. `mtu` and `mss` reckon with a path of 1500 octets; inside another tunnel the path is the `mtu` of that one, so ' +
      'that both ends, and the hosts behind them, have to be given as much less. Where tunnels would lead back into this one, ' +
      'over however many, it is refused (409), and so it is inside more than 64.',
    access: 'write',
    body: tunnelCreate,
    answer: tunnel,
    errors: ['validation_failed', 'ip_not_allowed', 'conflict', 'quota_exceeded'],
    waits: true,
    example: { body: exampleTunnel },
  },
  {
    ...network,
    id: 'listTunnels',
    number: 18,
    method: 'GET',
    path: '/tunnel',
    summary: 'List tunnels',
    description:
      "The caller's own, oldest first, complete unless `limit` is given. A body is not needed; one that is sent is not " +
      "read. A provider finds its users' with `GET /provider/tunnel`.",
    access: 'read',
    query: tunnelListQuery,
    body: Type.Object({}, { additionalProperties: false }),
    bodyOptional: true,
    answer: tunnelList,
    errors: ['validation_failed'],
  },
  {
    ...network,
    id: 'readTunnel',
    number: 19,
    method: 'GET',
    path: '/tunnel/{uuid}',
    summary: 'Read one tunnel',
    description:
      "Answers an array with the one tunnel; `tunnel_information` has what the customer's end has to be set " +
      'to, router by router, the state there, and how the customer answers through it (`probe`).',
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
    description:
      'Marks the tunnel for deletion. Its subnets can be routed elsewhere at once; its keys and inner addresses are not ' +
      'given to another tunnel before every router has taken it down. Until then it stays readable, and deleting it again ' +
      'is no error.',
    access: 'write',
    params: uuidParams,
    answer: markedForDeletion,
    errors: ['not_found'],
    waits: true,
  },
  {
    ...extension,
    id: 'listProviderTunnels',
    method: 'GET',
    path: '/provider/tunnel',
    roles: ['provider'],
    summary: "List the tunnels of all the provider's users",
    description:
      "An array, as the provider's other lists are. The provider's own tunnels are in it too. Oldest first, complete " +
      'unless `limit` is given.',
    access: 'read',
    query: providerTunnelListQuery,
    answer: Type.Array(tunnel),
    errors: ['validation_failed'],
  },
  {
    ...extension,
    id: 'changeTunnel',
    method: 'PATCH',
    path: '/tunnel/{uuid}',
    summary: 'Change fields of a tunnel in place',
    description:
      'Absent fields stay. Ends on routers that stay in scope keep their key or VNI and their inner addresses, also when ' +
      '`endpoint` moves to the other family; a router that comes back into scope gets those that it had. Subnets that stay ' +
      'are not asked about again. A change that lets tunnels lead back into this one is refused (409). The type cannot be ' +
      'changed: that is another tunnel.',
    access: 'write',
    params: uuidParams,
    body: tunnelPatch,
    answer: tunnel,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found', 'conflict'],
    waits: true,
    example: { body: { endpoint: '198.51.100.10' } },
  },
  {
    ...extension,
    id: 'readTunnelConfig',
    method: 'GET',
    path: '/tunnel/{uuid}/config',
    summary: "Write the configuration of the customer's end",
    description:
      'Text to paste: the device with key or VNI and MTU, inner addresses, a route that sends replies from `ips` back ' +
      'through the tunnel, and the MSS clamp. Not every system has every type of tunnel; a format that lacks it is refused ' +
      'with those that do. Comments at the top say what is left to do by hand.',
    access: 'read',
    params: uuidParams,
    query: tunnelConfigQuery,
    answer: Type.String({ minLength: 1 }),
    answerMedia: 'text/plain',
    errors: ['validation_failed', 'not_found', 'conflict'],
    entityTag: true,
  },
];
