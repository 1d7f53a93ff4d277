import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OF_A_TARGET, OF_A_TARGET_AND_ACCOUNT, PER_SECOND, Targets } from './targets.ts';

const NOW = 1_700_000_000_000;

test('a target takes so many at once, and of one account fewer', () => {
  const targets = new Targets();
  const leave: (() => void)[] = [];
  const enter = (account: string) => {
    const left = targets.enter(['host', '192.0.2.1'], account, NOW);
    if (left !== undefined) leave.push(left);
    return left !== undefined;
  };
  for (let each = 0; each < OF_A_TARGET_AND_ACCOUNT; each++) assert.ok(enter('a'));
  assert.equal(enter('a'), false);
  assert.equal(targets.room('192.0.2.1', 'a', NOW), 0);
  assert.equal(targets.room('192.0.2.1', 'b', NOW), OF_A_TARGET_AND_ACCOUNT);
  for (let each = 0; each < 100; each++) enter(`other ${each}`);
  assert.equal(leave.length, OF_A_TARGET);
  for (const each of leave) each();
  assert.ok(enter('a'));
});

test('what one of the names has no room for is entered at none of them', () => {
  const targets = new Targets();
  for (let each = 0; each < OF_A_TARGET_AND_ACCOUNT; each++) targets.enter(['192.0.2.1'], 'a', NOW);
  assert.equal(targets.enter(['host', '192.0.2.1'], 'a', NOW), undefined);
  assert.equal(targets.room('host', 'a', NOW), OF_A_TARGET_AND_ACCOUNT);
});

test('a target is asked for no more in a second than the rate, over any stretch of time', () => {
  const targets = new Targets();
  let entered = 0;
  for (let at = NOW; at < NOW + 10_000; at += 5) {
    for (let each = 0; each < 5; each++) {
      const leave = targets.enter(['host'], `account ${each}`, at);
      if (leave === undefined) continue;
      entered++;
      leave();
    }
  }
  assert.ok(Math.abs(entered - 11 * PER_SECOND) <= 2, String(entered));
  const next = targets.notBefore('host');
  assert.equal(targets.room('host', 'a', next - 1), 0);
  assert.equal(targets.room('host', 'a', next), 1);
});

test('nothing is kept of a target that nothing is under way to and that has its whole rate', () => {
  const targets = new Targets();
  const leave = targets.enter(['host', 'other'], 'a', NOW);
  targets.forget(NOW + 60_000);
  assert.equal(targets.size, 2);
  leave?.();
  targets.forget(NOW);
  assert.equal(targets.size, 2);
  targets.forget(NOW + 60_000);
  assert.equal(targets.size, 0);
});
