/** Operations of whoever runs the installation: providers, locations, routers. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { provider, providerCreate } from '../schemas/account.ts';
import { location, locationCreate, router, routerCreate, routerCreated } from '../schemas/topology.ts';

const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;

export const operatorOperations: readonly Operation[] = [
  {
    ...operator,
    id: 'createProvider',
    method: 'POST',
    path: '/operator/provider',
    summary: 'Create a provider with its prefixes',
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
    access: 'read',
    answer: Type.Array(provider),
    errors: [],
  },
  {
    ...operator,
    id: 'createLocation',
    method: 'POST',
    path: '/operator/location',
    summary: 'Create a location',
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
    access: 'read',
    answer: Type.Array(location),
    errors: [],
  },
  {
    ...operator,
    id: 'createRouter',
    method: 'POST',
    path: '/operator/router',
    summary: 'Announce a router and get its one-time enrolment token',
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
    access: 'read',
    answer: Type.Array(router),
    errors: [],
  },
];
