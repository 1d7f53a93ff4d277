import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { filterOf } from '../testing/filters.ts';
import { ruleOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { parseMessage } from './message.ts';

const parse = (value: unknown) => parseMessage(Buffer.from(JSON.stringify(value)));

test('every message of the protocol is taken as it is', () => {
  for (const message of [
    { type: 'hello', router: { uuid: 'u', name: 'n', location: 'l' }, heartbeat_s: 5 },
    { type: 'hello', router: { uuid: 'u', name: 'n', location: 'l' }, heartbeat_s: 5, tells: ['rules', 'stars'] },
    { type: 'heartbeat' },
    { type: 'snapshot_begin' },
    { type: 'rules', rules: [ruleOf(1)] },
    { type: 'filters', filters: [filterOf(1, { filter: 9999 })] },
    { type: 'tunnels', tunnels: [tunnelOf(1)] },
    { type: 'snapshot_end', cursor: '12.7.0a1b2c3d4e' },
    { type: 'changes', cursor: '18446744073709551615.9', upsert: [ruleOf(1)], remove: ['x'] },
    { type: 'changes', cursor: '1.9', upsert: [], filters: [filterOf(1)], tunnels: [tunnelOf(2)], remove: [] },
  ]) {
    assert.deepEqual(parse(message), { ok: true, message });
  }
});

test('a message that this release does not know is passed over', () => {
  assert.deepEqual(parse({ type: 'flowrules', flowrules: [] }), { ok: true, message: undefined });
});

test('a malformed message is refused', () => {
  for (const message of [
    null,
    [],
    'hello',
    { type: 7 },
    { type: 'rules', rules: [{ uuid: 'x' }] },
    { type: 'rules', rules: {} },
    { type: 'snapshot_end', cursor: 'late st' },
    { type: 'changes', cursor: '1.1', upsert: [] },
    { type: 'changes', cursor: '1.1', upsert: [{ ...ruleOf(1), sequence: 1.5 }], remove: [] },
    { type: 'changes', cursor: '1.1', upsert: [], remove: [1] },
    { type: 'changes', cursor: '1.1', upsert: [], remove: [], filters: [ruleOf(1)] },
    { type: 'changes', cursor: '1.1', upsert: [], remove: [], tunnels: [{}] },
    { type: 'rules', rules: [filterOf(1)] },
    { type: 'filters', filters: [{ ...filterOf(1), filter: 'dns' }] },
    { type: 'tunnels' },
    { type: 'hello', router: { uuid: 'u', name: 'n', location: 'l' }, heartbeat_s: 5, tells: 'all' },
  ]) {
    assert.equal(parse(message).ok, false, JSON.stringify(message));
  }
});

test('no bytes whatever make the parser throw', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void parseMessage(Buffer.from(bytes))));
  fc.assert(fc.property(fc.jsonValue(), (value) => void parse(value)));
});
