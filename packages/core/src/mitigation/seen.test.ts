import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sightOf } from './seen.ts';
import { profileOf } from './testing/profile.ts';

const unseen = (vector: string) => profileOf(vector, { samples: 0 });
const names = (profiles: readonly { readonly vector: string }[]) => profiles.map(({ vector }) => vector);
const look = (purposes: readonly string[], more: { isOver?: boolean; isSubnet?: boolean } = {}) => {
  const profiles = [unseen('udp-amplification'), unseen('tcp-syn'), profileOf('icmp')];
  const { seen, awaited } = sightOf(profiles, purposes, { isOver: false, isSubnet: false, ...more });
  return [names(seen), names(awaited)];
};

test('only what is stopped by its look is waited for, on a subnet all of it, and neither for longer than there is time', () => {
  assert.deepEqual(look([]), [['tcp-syn', 'icmp'], ['udp-amplification']]);
  assert.deepEqual(look([], { isSubnet: true }), [['icmp'], ['udp-amplification', 'tcp-syn']]);
  assert.deepEqual(look([], { isOver: true }), [['udp-amplification', 'tcp-syn', 'icmp'], []]);
});

test('what has measures keeps them while it is not seen', () => {
  assert.deepEqual(look(['udp-amplification:ports'], { isOver: true }), [['tcp-syn', 'icmp'], []]);
});
