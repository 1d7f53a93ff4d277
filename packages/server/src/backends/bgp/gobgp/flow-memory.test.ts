import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routeOfFields } from '../testing/flowrules.ts';
import { FlowMemory } from './flow-memory.ts';

const [one, other] = ['198.18.0.5', '198.18.0.6'].map((dst) =>
  routeOfFields({ dst, components: {}, action: 'discard' }),
);
assert.ok(one !== undefined && other !== undefined);
const path = ({ key, content }: typeof one, isFromPeer = false) => ({ key, content, isFromPeer });

test('a family is remembered, with what was told since, until a change comes that is not ours', () => {
  const memory = new FlowMemory();
  memory.begin();
  const learn = memory.relearn('flow4');
  learn(path(one), true);
  learn(path(other), false);
  assert.deepEqual([...(memory.recall('flow4')?.ours.keys() ?? [])], [one.key]);
  assert.deepEqual([...(memory.recall('flow4')?.foreign ?? [])], [other.key]);
  memory.withdrawn({ key: one.key });
  assert.equal(memory.recall('flow4')?.ours.size, 0);
  memory.announced(one);
  assert.equal(memory.recall('flow4')?.ours.get(one.key), one.content);
  memory.changed({ family: 'flow6', isOurs: false });
  memory.changed({ family: 'flow4', isOurs: true });
  assert.notEqual(memory.recall('flow4'), undefined);
  memory.changed({ family: 'flow4', isOurs: false });
  assert.equal(memory.recall('flow4'), undefined);
});

test('nothing is remembered before changes are told of, of a change during the list, nor where a peer has routes', () => {
  const memory = new FlowMemory();
  memory.relearn('flow4');
  assert.equal(memory.recall('flow4'), undefined, 'never told');
  memory.begin();
  assert.equal(memory.recall('flow4'), undefined, 'listed before');
  const learn = memory.relearn('flow4');
  memory.changed({ family: 'flow4', isOurs: false });
  learn(path(one), true);
  assert.equal(memory.recall('flow4'), undefined, 'changed meanwhile');
  memory.relearn('flow4')(path(one, true), false);
  assert.equal(memory.recall('flow4'), undefined, "a peer's");
  assert.equal(memory.recall('flow6'), undefined, 'never listed');
});
