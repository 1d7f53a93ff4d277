import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  packetTypes as contractPacketTypes,
  ruleActions as contractRuleActions,
  ruleFields as contractRuleFields,
  stateTypes as contractStateTypes,
  tcpFlagNames as contractTcpFlagNames,
  type FirewallRuleFields,
} from '@levee/contract/schemas/firewall-rule.ts';
import {
  type CanonicalRule,
  connectionStates,
  defaultPriority,
  descriptionMaximum,
  packetLengthBounds,
  packetTypes,
  priorityBounds,
  rateLimitBounds,
  ruleActions,
  ruleFields,
  tcpFlagNames,
} from './wire.ts';

test('the words are the contract’s', () => {
  assert.deepEqual(ruleActions, contractRuleActions);
  assert.deepEqual(packetTypes, contractPacketTypes);
  assert.deepEqual(connectionStates, contractStateTypes);
  assert.deepEqual(tcpFlagNames, contractTcpFlagNames);
  assert.deepEqual([...ruleFields].sort(), Object.keys(contractRuleFields).sort());
});

test('the bounds are the contract’s', () => {
  // A schema is a JSON value; its type does not tell its keywords.
  const fact = (schema: object, keyword: string): unknown =>
    Object.entries(schema).find(([name]) => name === keyword)?.[1];
  const bounds = (schema: object) => ({ minimum: fact(schema, 'minimum'), maximum: fact(schema, 'maximum') });
  assert.deepEqual(bounds(contractRuleFields.priority), { ...priorityBounds });
  assert.deepEqual(bounds(contractRuleFields.ratelimit), { ...rateLimitBounds });
  assert.deepEqual(bounds(contractRuleFields.packetlength), { ...packetLengthBounds });
  assert.equal(fact(contractRuleFields.priority, 'default'), defaultPriority);
  assert.equal(fact(contractRuleFields.descr, 'maxLength'), descriptionMaximum);
});

test('a canonical rule is what the contract answers', () => {
  const canonical: CanonicalRule = {
    dst: '203.0.113.7',
    protocol: 'tcp',
    action: 'drop',
    priority: 1,
    disabled: false,
    tcpflags: ['syn'],
    port: { dst: { start: 80 } },
  };
  const answered: FirewallRuleFields = canonical;
  assert.equal(answered, canonical);
});
