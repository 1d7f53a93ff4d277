/** Operations on firewall rules: 1 to 4 of the given interface and their extensions. */
import Type from 'typebox';
import type { Operation, Role } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { explainRequest, explanation } from '../schemas/explain.ts';
import {
  firewallRule,
  firewallRuleCreate,
  firewallRulePatch,
  firewallRuleReplace,
  replacedRules,
} from '../schemas/firewall-rule.ts';
import { providerRuleListQuery, ruleListQuery, uuidParams } from '../schemas/list.ts';
import { confirmedChange } from '../schemas/object.ts';
import { rulePreview } from '../schemas/preview.ts';

const holders: readonly Role[] = ['provider', 'user'];
const one = { roles: holders, roleError: 'provider_key_required', tag: 'DDoS Mitigation' } as const;
const extension = { roles: holders, roleError: 'provider_key_required', tag: 'extension' } as const;

const exampleRule = {
  dst: '203.0.113.7',
  protocol: 'udp',
  action: 'drop',
  priority: 10,
  descr: 'no memcached replies',
  port: { src: { start: 11211, end: 11211 } },
};

export const firewallOperations: readonly Operation[] = [
  {
    ...one,
    id: 'createFirewallRule',
    number: 1,
    method: 'POST',
    path: '/firewall/rule',
    summary: 'Create a firewall rule',
    description:
      'Rules of a destination are evaluated by priority, 1 first, equal ones in the order of their creation. ' +
      '`accept` ends that and lets the packet through, past the filters; `drop` discards it; `reject` answers ' +
      'and discards it; `continue` counts it and goes on. What no rule decides goes on to the filters, and ' +
      'through. Traffic above `ratelimit` is discarded under every action; within it `drop` and `reject` let ' +
      'it go on to the next rule. Ports go with tcp, udp, udplite, sctp, dccp, any and ip, TCP flags with tcp.',
    access: 'write',
    body: firewallRuleCreate,
    answer: firewallRule,
    errors: ['validation_failed', 'ip_not_allowed', 'quota_exceeded'],
    waits: true,
    example: { body: exampleRule },
  },
  {
    ...one,
    id: 'readFirewallRule',
    number: 2,
    method: 'GET',
    path: '/firewall/rule/{uuid}',
    summary: 'Read one firewall rule',
    description:
      'Answers an array with the one rule. `applied` says router by router whether it is in force, `hits` what ' +
      'it has matched.',
    access: 'read',
    params: uuidParams,
    answer: Type.Array(firewallRule, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...one,
    id: 'deleteFirewallRule',
    number: 3,
    method: 'DELETE',
    path: '/firewall/rule/{uuid}',
    summary: 'Delete a firewall rule',
    description:
      'Marks the rule for deletion; it stays readable until every router has removed it, and is gone then. Deleting it ' +
      'again is no error as long as it is there, and answers 404 afterwards: with no router that is about a second later.',
    access: 'write',
    params: uuidParams,
    answer: markedForDeletion,
    errors: ['not_found'],
    waits: true,
  },
  {
    id: 'listProviderFirewallRules',
    number: 4,
    method: 'GET',
    path: '/provider/firewall/rule',
    tag: 'DDoS Mitigation [Provider]',
    summary: "List the firewall rules of all the provider's users",
    description: "The provider's own rules are in the list too. Oldest first, complete unless `limit` is given.",
    roles: ['provider'],
    roleError: 'provider_key_required',
    access: 'read',
    query: providerRuleListQuery,
    answer: Type.Array(firewallRule),
    errors: ['validation_failed'],
  },
  {
    ...extension,
    id: 'listFirewallRules',
    method: 'GET',
    path: '/firewall/rule',
    summary: "List the caller's firewall rules",
    description: 'Oldest first, complete unless `limit` is given.',
    access: 'read',
    query: ruleListQuery,
    answer: Type.Array(firewallRule),
    errors: ['validation_failed'],
  },
  {
    ...extension,
    id: 'changeFirewallRule',
    method: 'PATCH',
    path: '/firewall/rule/{uuid}',
    summary: 'Change fields of a firewall rule in place',
    description:
      'Absent fields stay, `null` removes an optional one. There is no moment without the rule. A `dst` that stays is ' +
      'not asked about again: a rule of a provider over addresses that a user was granted since can still be changed. ' +
      'A `dst` that moves must be one for which the caller could create a rule.',
    access: 'write',
    params: uuidParams,
    body: firewallRulePatch,
    answer: firewallRule,
    errors: ['validation_failed', 'ip_not_allowed', 'not_found', 'conflict'],
    waits: true,
    example: { body: { disabled: true } },
  },
  {
    ...extension,
    id: 'replaceFirewallRules',
    method: 'PUT',
    path: '/firewall/rules',
    summary: 'Replace all rules of one destination at once',
    description:
      "The caller's rules whose destination is exactly `dst` become the given set in one step. A rule that is in both " +
      'with the same fields stays as it is, with its uuid and counters.',
    access: 'write',
    query: Type.Object(
      { dst: Type.String({ maxLength: 64, description: 'The destination: an address or a subnet.' }) },
      { additionalProperties: false },
    ),
    body: firewallRuleReplace,
    answer: replacedRules,
    errors: ['validation_failed', 'ip_not_allowed', 'quota_exceeded'],
    waits: true,
    example: { body: { rules: [{ protocol: 'udp', action: 'drop' }] } },
  },
  {
    ...extension,
    id: 'explainPacket',
    method: 'POST',
    path: '/firewall/explain',
    summary: 'Say what would happen to a packet, and why',
    description:
      'Every rule and filter in force for the destination is evaluated, whoever owns it; those that the caller may not ' +
      'read appear without uuid and contents. What is left out is not known: a rule that needs it is passed, a filter that ' +
      'needs it lets the packet on, and both say so. Limits are taken as not exceeded. Filters answer as a router does that ' +
      'has been enforcing them for a while and has not heard of the source yet; with `statetype` `established` it has seen ' +
      'the flow in both directions.',
    access: 'read',
    body: explainRequest,
    answer: explanation,
    errors: ['validation_failed', 'ip_not_allowed'],
    example: { body: { dst: '203.0.113.7', src: '198.51.100.1', protocol: 'udp', port: { src: 11211, dst: 40000 } } },
  },
  {
    ...extension,
    id: 'previewFirewallRule',
    method: 'POST',
    path: '/firewall/preview',
    summary: 'Say what a draft rule would have matched',
    description:
      "Takes a rule as its creation does and stores nothing. Detectors' samples of the last 15 minutes to its destination are " +
      'held against it, none from before the caller held it, alone and beside everything that is enforced there. What a ' +
      'sample cannot show is counted as ' +
      'undecided, never guessed. Fragments are judged as they arrived. Without samples the answer says why.',
    access: 'read',
    body: firewallRuleCreate,
    answer: rulePreview,
    errors: ['validation_failed', 'ip_not_allowed'],
    example: { body: { dst: '203.0.113.7', protocol: 'udp', action: 'drop', port: { src: { start: 53 } } } },
  },
  {
    ...extension,
    id: 'confirmChange',
    method: 'POST',
    path: '/firewall/confirm/{change_uuid}',
    summary: 'Confirm a change that would otherwise be undone',
    description:
      'Its `change_uuid` came with the answer to a change that was sent with `confirm_within`. Confirming ' +
      'twice is no error.',
    access: 'write',
    params: Type.Object({ change_uuid: Type.String({ description: 'From the answer of the change.' }) }),
    answer: confirmedChange,
    errors: ['not_found', 'conflict'],
  },
];
