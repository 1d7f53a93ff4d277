/** Operations of whoever runs the installation: providers, locations, routers. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { provider, providerChange, providerChanged, providerCreate } from '../schemas/account.ts';
import { uuidParams } from '../schemas/list.ts';
import {
  location,
  locationCreate,
  removedTopology,
  router,
  routerCreate,
  routerCreated,
  routerPatch,
  routerToken,
} from '../schemas/topology.ts';

const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;

export const operatorOperations: readonly Operation[] = [
  {
    ...operator,
    id: 'createProvider',
    method: 'POST',
    path: '/operator/provider',
    summary: 'Create a provider with its prefixes',
    description:
      'The provider owns its prefixes: no other account can act on them but its users, and no two providers ' +
      'overlap.',
    access: 'write',
    body: providerCreate,
    answer: provider,
    errors: ['validation_failed', 'conflict'],
    example: { body: { name: 'Example Hosting', prefixes: ['203.0.113.0/24', '2001:db8::/32'] } },
  },
  {
    ...operator,
    id: 'listProviders',
    method: 'GET',
    path: '/operator/provider',
    summary: 'List providers',
    description: 'Oldest first.',
    access: 'read',
    answer: Type.Array(provider),
    errors: [],
  },
  {
    ...operator,
    id: 'changeProvider',
    method: 'PATCH',
    path: '/operator/provider/{uuid}',
    summary: 'Rename a provider, give it prefixes or take them away',
    description:
      'What is absent stays. `remove_prefixes` takes whole prefixes or parts of them; of a part the rest stays. Where a ' +
      "user holds addresses of one nothing is changed, and the answer names the user: only the provider can take a user's " +
      'addresses. Objects of the provider itself on what is removed are marked for deletion.',
    access: 'write',
    params: uuidParams,
    body: providerChange,
    answer: providerChanged,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: { body: { name: 'Example Hosting', add_prefixes: ['192.0.2.0/24'] } },
  },
  {
    ...operator,
    id: 'createLocation',
    method: 'POST',
    path: '/operator/location',
    summary: 'Create a location',
    description: 'A place with routers, such as a site or a city; tunnels can be restricted to some.',
    access: 'write',
    body: locationCreate,
    answer: location,
    errors: ['validation_failed', 'conflict'],
    example: { body: { name: 'fra1' } },
  },
  {
    ...operator,
    id: 'listLocations',
    method: 'GET',
    path: '/operator/location',
    summary: 'List locations',
    description: 'In order of creation.',
    access: 'read',
    answer: Type.Array(location),
    errors: [],
  },
  {
    ...operator,
    id: 'deleteLocation',
    method: 'DELETE',
    path: '/operator/location/{uuid}',
    summary: 'Remove a location that has no routers',
    description: 'Remove its routers first.',
    access: 'write',
    params: uuidParams,
    answer: removedTopology,
    errors: ['not_found', 'conflict'],
  },
  {
    ...operator,
    id: 'createRouter',
    method: 'POST',
    path: '/operator/router',
    summary: 'Announce a router and get its one-time enrolment token',
    description:
      "The token is traded for the router's key by `levee router enroll`, once and within an hour. " +
      '`tunnel_addresses` are where tunnels end at this router; without any it carries none. It gets an end of every ' +
      'tunnel that has it in scope.',
    access: 'write',
    body: routerCreate,
    answer: routerCreated,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: { body: { name: 'edge1', location: 'fra1', tunnel_addresses: ['192.0.2.1', '2001:db8:ffff::1'] } },
  },
  {
    ...operator,
    id: 'listRouters',
    method: 'GET',
    path: '/operator/router',
    summary: 'List routers',
    description: 'Whether each is enrolled, how it enforces, when it was last heard of.',
    access: 'read',
    answer: Type.Array(router),
    errors: [],
  },
  {
    ...operator,
    id: 'readRouter',
    method: 'GET',
    path: '/operator/router/{uuid}',
    summary: 'Read one router',
    description: '`status` is what its agent tells of itself and its machine.',
    access: 'read',
    params: uuidParams,
    answer: router,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...operator,
    id: 'changeRouter',
    method: 'PATCH',
    path: '/operator/router/{uuid}',
    summary: 'Rename a router, move it, or give it other tunnel addresses',
    description:
      'What is absent stays. Tunnels follow at once: the router gets an end of each that has it in scope now, ends that ' +
      'stay keep their key or VNI and their inner addresses, and those out of scope go (and come back with the same). ' +
      'Customers have to set the other address on their side: `GET /tunnel/{uuid}/config` shows it. The router that `npm ' +
      'start` runs beside the control plane is made without tunnel addresses, and gets them so.',
    access: 'write',
    params: uuidParams,
    body: routerPatch,
    answer: router,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: { body: { tunnel_addresses: ['192.0.2.1', '2001:db8:ffff::1'] } },
  },
  {
    ...operator,
    id: 'renewRouterToken',
    method: 'POST',
    path: '/operator/router/{uuid}/token',
    summary: 'Get another one-time enrolment token for a router',
    description:
      "For a router that lost its key, was built anew, or never used its first token, which is void then. The router's " +
      'present key works until the new token is used, and no longer.',
    access: 'write',
    params: uuidParams,
    answer: routerToken,
    errors: ['not_found'],
  },
  {
    ...operator,
    id: 'deleteRouter',
    method: 'DELETE',
    path: '/operator/router/{uuid}',
    summary: 'Remove a router',
    description:
      'Its key stops working, its stream ends, what it acknowledged and counted is dropped, and no state waits for it ' +
      'any more. What it has in its kernel stays in force there until it is taken out of service. The router of this ' +
      'very machine is made again, with another key, when `levee up` starts next.',
    access: 'write',
    params: uuidParams,
    answer: removedTopology,
    errors: ['not_found'],
  },
];
