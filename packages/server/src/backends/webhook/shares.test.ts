import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IN_ALL, KEPT_FOR_THE_IDLE, OF_AN_ACCOUNT, Shares, type Wish } from './shares.ts';

const wish = (webhook: string, account: string, more: Partial<Wish> = {}): Wish => ({
  webhook,
  account,
  most: 4,
  target: webhook,
  targetMost: 8,
  ...more,
});
/** Begins all that it gives. */
function divide(shares: Shares, wishes: readonly Wish[]): ReadonlyMap<string, number> {
  const given = shares.divide(wishes);
  const accountOf = new Map(wishes.map(({ webhook, account }) => [webhook, account]));
  for (const [webhook, count] of given) {
    for (let each = 0; each < count; each++) shares.began(accountOf.get(webhook) ?? '');
  }
  return given;
}

test('an account has a share that its webhooks take in turns', () => {
  const shares = new Shares();
  const wishes = Array.from({ length: 20 }, (_, index) => wish(`w${index}`, 'a'));
  const given = divide(shares, wishes);
  assert.equal(shares.underWay, OF_AN_ACCOUNT);
  assert.deepEqual(new Set(given.values()), new Set([1]));
  assert.equal(shares.hasRoom('a'), false);
  assert.equal(divide(shares, wishes).size, 0);
  shares.ended('a');
  assert.equal(shares.hasRoom('a'), true);
});

test('what is given of one target is bounded for the account, whatever its webhooks could begin', () => {
  const wishes = Array.from({ length: 5 }, (_, index) => wish(`w${index}`, 'a', { target: 'host', targetMost: 3 }));
  const given = new Shares().divide([...wishes, wish('other', 'a')]);
  assert.equal(given.get('other'), 4);
  assert.equal(
    [...given.values()].reduce((sum, each) => sum + each),
    7,
  );
});

test('those who have the fewest under way come first, and some room is kept for those who have none', () => {
  const shares = new Shares();
  const greedy = Array.from({ length: 40 }, (_, account) =>
    Array.from({ length: 20 }, (_, index) => wish(`${account}/${index}`, `greedy ${account}`)),
  ).flat();
  divide(shares, greedy);
  assert.equal(shares.underWay, IN_ALL - KEPT_FOR_THE_IDLE);
  const [late] = divide(shares, [...greedy, wish('late', 'late')]);
  assert.deepEqual(late, ['late', 1]);
  // Nothing is left but what is kept: whoever has one waits until others have ended.
  assert.equal(divide(shares, [wish('late', 'late')]).size, 0);
  for (let each = 0; each < KEPT_FOR_THE_IDLE + 10; each++) divide(shares, [wish(`idle ${each}`, `idle ${each}`)]);
  assert.equal(shares.underWay, IN_ALL);
  for (let each = 0; each < 50; each++) shares.ended(`greedy ${each % 10}`);
  const next = divide(shares, [...greedy, wish('late', 'late')]);
  assert.equal(next.get('late'), 1);
});
