import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry } from '@levee/core/filter/entry.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { testRule } from '@levee/core/nftables/testing/test-rule.ts';
import type { NftDriver } from '../drivers/nft/port.ts';
import { createInstaller } from './installer.ts';

test('conntrack hears of the destinations that it is about to see before the kernel does, and of no others', async () => {
  const happened: string[] = [];
  const driver = {
    apply(text: string) {
      happened.push(text.includes('table inet levee {') ? 'load' : 'change');
      return Promise.resolve({ ok: true, output: '' });
    },
  } as Pick<NftDriver, 'apply'> as NftDriver;
  const installer = createInstaller({
    driver,
    createCompiler,
    newMark: () => '0'.repeat(16),
    readMark: () => Promise.resolve(undefined),
    beforeFlush: () => undefined,
    beforeTracking(prefixes) {
      happened.push(prefixes.map(formatPrefix).join());
      return Promise.resolve();
    },
    afterFlush: () => undefined,
    own: (work) => work(),
  });
  const stateful = (number: number, dst: string): Entry => testRule(number, dst, { connectionState: 'new' });
  const mark = '1'.repeat(16);
  await installer.replace([stateful(1, '203.0.113.7'), testRule(2, '203.0.113.8')], mark);
  await installer.change({ upsert: [stateful(3, '203.0.113.7'), testRule(4, '203.0.113.9')], remove: [] }, mark);
  await installer.change({ upsert: [stateful(5, '2001:db8::/32')], remove: [] }, mark);
  assert.deepEqual(happened, ['203.0.113.7', 'load', 'change', '2001:db8::/32', 'change']);
});
