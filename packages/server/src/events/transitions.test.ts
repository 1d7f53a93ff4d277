import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventNames, eventsOf } from '@levee/contract/event-names.ts';
import { isOpen, type ObjectNow, type Told, whatToTell } from './transitions.ts';

const now = (state: string, position = 7): ObjectNow => ({
  uuid: 'u',
  ownerUuid: 'o',
  providerUuid: 'p',
  change: { xid: 1, position },
  state,
});
const told = (state: string, changePosition = 7): Told => ({ state, changePosition });

const cases: readonly [what: string, told: Told | undefined, now: ObjectNow, tells: readonly string[]][] = [
  ['a new object', undefined, now('pending'), ['pending']],
  ['one that settled before it was looked at', undefined, now('active'), ['active']],
  ['one that nothing became of yet', told('pending'), now('pending'), []],
  ['one that settles', told('pending'), now('active'), ['active']],
  ['one that settles as disabled', told('pending'), now('disabled'), ['disabled']],
  ['one that is refused', told('pending'), now('failed'), ['failed']],
  ['one that is refused after it had settled', told('active'), now('failed'), ['failed']],
  ['one that is refused no more', told('failed'), now('active'), ['active']],
  ['one that is refused no more and waits for a router', told('failed'), now('pending'), []],
  ['a settled one on a router that fell silent', told('active'), now('pending'), []],
  ['a settled one whose router came back', told('active'), now('active'), []],
  ['another change', told('active', 6), now('pending'), ['pending']],
  ['another change that has settled already', told('active', 6), now('active'), ['active']],
  ['a deletion', told('active', 6), now('marked_for_deletion'), ['marked_for_deletion']],
  ['a deletion told of', told('marked_for_deletion'), now('marked_for_deletion'), []],
  ['a deletion that was undone', told('marked_for_deletion', 6), now('pending'), ['pending']],
  ['a settled one whose server refuses everything', told('active'), { ...now('failed'), isShared: true }, []],
  ['one that waits for a server that refuses everything', told('pending'), { ...now('failed'), isShared: true }, []],
  ['a change at a server that refuses everything', told('active', 6), { ...now('failed'), isShared: true }, ['failed']],
  ['a flowrule that is no longer to be announced', told('active'), now('proposed'), []],
];

for (const [what, before, after, tells] of cases) {
  test(`of ${what} is told: ${tells.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(whatToTell('firewall_rule', before, after), tells);
  });
}

test('an attack starts once and ends once, and every other change of its record is one', () => {
  assert.deepEqual(whatToTell('attack', undefined, now('ongoing')), ['started']);
  assert.deepEqual(whatToTell('attack', undefined, now('ended')), ['started', 'ended']);
  assert.deepEqual(whatToTell('attack', told('ongoing'), now('ongoing')), []);
  assert.deepEqual(whatToTell('attack', told('ongoing', 6), now('ongoing')), ['changed']);
  assert.deepEqual(whatToTell('attack', told('ongoing', 6), now('ended')), ['ended']);
  assert.deepEqual(whatToTell('attack', told('ended', 6), now('ended')), ['changed']);
});

test('only what may still come to something by itself is looked at again', () => {
  for (const state of ['pending', 'proposed', 'failed', 'marked_for_deletion']) assert.ok(isOpen('rdns', state), state);
  for (const state of ['active', 'disabled']) assert.ok(!isOpen('firewall_rule', state), state);
  assert.ok(!isOpen('attack', 'ongoing'));
});

test('every state that an object can be told in is a name that clients can choose', () => {
  for (const state of ['pending', 'active', 'disabled', 'failed', 'marked_for_deletion', 'deleted']) {
    assert.ok(eventNames.includes(`firewall_rule.${state}`), state);
  }
  assert.ok(Object.values(eventsOf).every((whats) => new Set(whats).size === whats.length));
});
