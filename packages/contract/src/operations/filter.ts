/** Operations on filters: 5 to 8 of the given interface and their extensions. */
import Type from 'typebox';
import type { Operation, Role } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { filter, filterCreate, filterKind, filterListQuery, providerFilterListQuery } from '../schemas/filter.ts';
import { uuidParams } from '../schemas/list.ts';

const holders: readonly Role[] = ['provider', 'user'];
const own = { roles: holders, roleError: 'provider_key_required', tag: 'DDoS Mitigation' } as const;

export const filterOperations: readonly Operation[] = [
  {
    ...own,
    id: 'createFilter',
    number: 5,
    method: 'POST',
    path: '/filter',
    summary: 'Create a filter',
    description:
      'Switches on one kind of protection for a destination. Traffic from outside `src`, of other transports, and of ' +
      "ports that neither `port` nor the kind's own ports name is not touched. Filters are asked after the firewall " +
      'rules, for traffic that no rule has accepted or discarded. A filter is `pending`, with the reason, on routers ' +
      'whose agent does not enforce its kind. `hits` counts what it has discarded. One destination may have 32 filters.',
    access: 'write',
    body: filterCreate,
    answer: filter,
    errors: ['validation_failed', 'ip_not_allowed', 'quota_exceeded'],
    waits: true,
    example: { body: { dst: '203.0.113.7', filter: 10, port: { dst: { start: 27015, end: 27020 } }, ratelimit: 500 } },
  },
  {
    ...own,
    id: 'listFilters',
    number: 6,
    method: 'GET',
    path: '/filter',
    summary: "List the caller's filters",
    description: 'Oldest first, complete unless `limit` is given.',
    access: 'read',
    query: filterListQuery,
    answer: Type.Array(filter),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'deleteFilter',
    number: 7,
    method: 'DELETE',
    path: '/filter/{uuid}',
    summary: 'Delete a filter',
    description:
      'Marks the filter for deletion; it stays readable until every router has let go of it, and is gone then. Deleting ' +
      'it again is no error as long as it is there, and answers 404 afterwards: with no router that is about a second ' +
      'later.',
    access: 'write',
    params: uuidParams,
    answer: markedForDeletion,
    errors: ['not_found'],
    waits: true,
  },
  {
    id: 'listProviderFilters',
    number: 8,
    method: 'GET',
    path: '/provider/filter',
    tag: 'DDoS Mitigation [Provider]',
    summary: "List the filters of all the provider's users",
    description: "The provider's own filters are in the list too. Oldest first, complete unless `limit` is given.",
    roles: ['provider'],
    roleError: 'provider_key_required',
    access: 'read',
    query: providerFilterListQuery,
    answer: Type.Array(filter),
    errors: ['validation_failed'],
  },
  {
    roles: holders,
    roleError: 'provider_key_required',
    tag: 'extension',
    id: 'readFilter',
    method: 'GET',
    path: '/filter/{uuid}',
    summary: 'Read one filter',
    description: 'An array with the one filter, as the reads of rules and tunnels answer.',
    access: 'read',
    params: uuidParams,
    answer: Type.Array(filter, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    roles: ['operator', 'provider', 'user'],
    roleError: 'provider_key_required',
    tag: 'extension',
    id: 'listFilterKinds',
    method: 'GET',
    path: '/filter/kind',
    summary: 'List the kinds of filters',
    description:
      'What each kind recognises and cannot do, and which fields a filter of it uses, so that a form can be drawn. The ' +
      'same for every caller; it changes with the release alone.',
    access: 'read',
    answer: Type.Array(filterKind),
    errors: [],
    entityTag: true,
  },
  {
    id: 'listProviderFilterKinds',
    method: 'GET',
    path: '/provider/filter/kind',
    tag: 'extension',
    summary: 'List the kinds of filters (provider)',
    description: 'The same list as `GET /filter/kind`, where the other provider operations are.',
    roles: ['provider'],
    roleError: 'provider_key_required',
    access: 'read',
    answer: Type.Array(filterKind),
    errors: [],
    entityTag: true,
  },
];
