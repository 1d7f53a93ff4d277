/** Operations on reverse DNS: 21 to 23 of the given interface, the list, and the operator's zones. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { uuidParams } from '../schemas/list.ts';
import { rdnsDelete, rdnsListQuery, rdnsRecord, rdnsWrite } from '../schemas/rdns.ts';
import { rdnsZone, rdnsZoneChange, rdnsZoneCreate, removedZone } from '../schemas/rdns-zone.ts';

const network = { tag: 'Network', roles: ['provider', 'user'], roleError: 'provider_key_required' } as const;
const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;
const rdnsExample = { ips: '203.0.113.7', record: 'mail.example.net' };
const zonePath = '/operator/rdns-zone/{uuid}';

export const rdnsOperations: readonly Operation[] = [
  {
    ...network,
    id: 'createRdns',
    number: 21,
    method: 'POST',
    path: '/rdns',
    summary: 'Create an rDNS record',
    description:
      'One record an address: where there is one already, the answer is 409 and PUT changes it. The answer never waits ' +
      'for a DNS server (unless `Prefer: wait` asks for it): the record is `pending` until the server of the narrowest ' +
      'reverse zone has it, `failed` when that refuses it, each with the reason. A PTR record that the server had under ' +
      'that name before is replaced. `forward_confirmed` comes later: whether the name resolves back to the address.',
    access: 'write',
    body: rdnsWrite,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'conflict', 'quota_exceeded'],
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
    description:
      'Whoever may act on the address may change its record: one that a provider made before it gave the address to a ' +
      "user becomes the user's, and counts in the user's quota.",
    access: 'write',
    body: rdnsWrite,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found', 'quota_exceeded'],
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
    description:
      'The record is marked for deletion and listed until the DNS server has removed it; the address can be given a new one ' +
      'at once. A provider may delete the records of its users.',
    access: 'write',
    body: rdnsDelete,
    answer: rdnsRecord,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found'],
    waits: true,
    example: { body: { ips: '203.0.113.7' } },
  },
  {
    ...network,
    id: 'listRdns',
    method: 'GET',
    path: '/rdns',
    tag: 'extension',
    summary: 'List rDNS records',
    description:
      "The caller's own; a provider's key lists those of its users too, and `owner_uuid` tells whose they are.",
    access: 'read',
    query: rdnsListQuery,
    answer: Type.Array(rdnsRecord),
    errors: ['validation_failed'],
  },
  {
    ...operator,
    id: 'createRdnsZone',
    method: 'POST',
    path: '/operator/rdns-zone',
    summary: 'Say which DNS server keeps a reverse zone',
    description:
      'An address belongs to the narrowest zone that covers it. Records that waited for a zone are applied at once; those ' +
      'that stood in a wider zone are applied here and left as they are there. Levee writes the PTR records of ' +
      'addresses that have a record in Levee, and touches nothing else in the zone. Zones must nest or be apart (409). ' +
      'A zone inside another is found only if that one says so: an embedded zone delegates the zones below it and leads ' +
      'the addresses of classless ones there by CNAME (RFC 2317), transfers included; what a zone that is kept elsewhere ' +
      'must hold, `delegation` says. Give an embedded zone `nameservers`: without any it answers, with a `warning`, and no ' +
      'resolver finds it.',
    access: 'write',
    body: rdnsZoneCreate,
    answer: rdnsZone,
    errors: ['validation_failed', 'conflict'],
    example: {
      body: {
        zone: '113.0.203.in-addr.arpa',
        driver: 'embedded',
        nameservers: ['ns1.example.net', 'ns2.example.net'],
      },
    },
  },
  {
    ...operator,
    id: 'listRdnsZones',
    method: 'GET',
    path: '/operator/rdns-zone',
    summary: 'List reverse zones and how their servers do',
    description: '`status` counts the records that each server has, waits for or refused. Secrets are not answered.',
    access: 'read',
    answer: Type.Array(rdnsZone),
    errors: [],
  },
  {
    ...operator,
    id: 'readRdnsZone',
    method: 'GET',
    path: zonePath,
    summary: 'Read one reverse zone and how its server does',
    description: 'Secrets are not answered.',
    access: 'read',
    params: uuidParams,
    answer: rdnsZone,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...operator,
    id: 'changeRdnsZone',
    method: 'PATCH',
    path: zonePath,
    summary: 'Change the server of a reverse zone',
    description:
      'What is not named stays, as far as the driver uses it; null takes away what is optional. All records of the zone are ' +
      'applied anew. Those at a former server stay there: it is no longer spoken to.',
    access: 'write',
    params: uuidParams,
    body: rdnsZoneChange,
    answer: rdnsZone,
    errors: ['validation_failed', 'not_found'],
    example: { body: { ttl: 3600 } },
  },
  {
    ...operator,
    id: 'deleteRdnsZone',
    method: 'DELETE',
    path: zonePath,
    summary: 'Let go of a reverse zone',
    description:
      'Its records stay in Levee and are applied to the next wider zone, or wait for one; what its server holds stays there ' +
      '(an embedded zone is refused from then on). Records that were marked for deletion and that no zone covers any more are removed.',
    access: 'write',
    params: uuidParams,
    answer: removedZone,
    errors: ['not_found'],
  },
];
