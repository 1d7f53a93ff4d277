import assert from 'node:assert/strict';
import test from 'node:test';
import { PARTITIONS } from '../bus/port.ts';
import { GONE_MILLISECONDS, Members, ownerOf } from './members.ts';

const good = { ready: true, linked: true };
const names = ['a', 'b', 'c', 'd'];

/** What each of them takes for its share, all having heard all. */
function shares(of: readonly string[], nowMs = 0): Map<string, Set<number>> {
  return new Map(
    of.map((name) => {
      const members = new Members(name);
      for (const other of of) members.heard(other, good, nowMs);
      return [name, members.share(good, nowMs)];
    }),
  );
}

test('each partition is of exactly one, whatever the order in which they were heard', () => {
  for (const present of [names, names.slice(0, 1), [...names].reverse()]) {
    const all = [...shares(present).values()].flatMap((share) => [...share]);
    assert.deepEqual(
      all.sort((x, y) => x - y),
      Array.from({ length: PARTITIONS }, (_, partition) => partition),
    );
  }
  for (const share of shares(names).values()) assert.ok(share.size >= 6 && share.size <= 28, String(share.size));
});

test('one that goes moves its own share and nothing else', () => {
  const before = shares(names);
  const after = shares(names.filter((name) => name !== 'b'));
  for (const [name, share] of after) {
    for (const partition of before.get(name) ?? []) assert.ok(share.has(partition), `${partition} left ${name}`);
  }
  assert.equal(ownerOf(5, []), undefined);
});

test('who shows no life for two seconds is gone, unless nobody could be heard', () => {
  const members = new Members('a');
  members.heard('b', good, 0);
  assert.notEqual(members.share(good, GONE_MILLISECONDS).size, PARTITIONS);
  members.forgive(10_000);
  assert.notEqual(members.share(good, 10_000 + GONE_MILLISECONDS).size, PARTITIONS);
  assert.equal(members.share(good, 10_001 + GONE_MILLISECONDS).size, PARTITIONS);
});

test('who is not ready has nothing, and whom no control plane hears only where it hears nobody', () => {
  const members = new Members('a');
  const unlinked = { ready: true, linked: false };
  members.heard('b', { ready: false, linked: true }, 0);
  assert.equal(members.share(good, 0).size, PARTITIONS);
  assert.equal(members.share({ ready: false, linked: true }, 0).size, 0);
  members.heard('b', unlinked, 0);
  assert.equal(members.share(good, 0).size, PARTITIONS);
  assert.notEqual(members.share(unlinked, 0).size, PARTITIONS);
  members.heard('b', good, 0);
  assert.equal(members.share(unlinked, 0).size, 0);
  members.left('b');
  assert.equal(members.share(unlinked, 0).size, PARTITIONS);
});
