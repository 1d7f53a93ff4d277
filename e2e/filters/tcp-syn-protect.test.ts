/** Guarantees of filter kind 1 with Debian's nginx and curl at both ends of the router, and with forged segments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import {
  assertSurvived,
  downloading,
  floodWithSyns,
  origin,
  showBrowsing,
  showHandshake,
  showLostAnswers,
  showStrangersDiscarded,
} from './behind-proxy.ts';
import { FilteredPath, families } from './filtered-path.ts';
import { Nginx } from './nginx.ts';

const skip = labObstacle() ?? false;
const kindId = 1;

test('the router completes handshakes itself, and a web server works behind it', { skip }, async (t) => {
  await using path = new FilteredPath('synprotect');
  using nginx = await Nginx.start(path);
  path.filter(kindId);
  for (const family of families) {
    await t.test(`IPv${family}: the server hears of a client that has brought back the cookie`, () =>
      showHandshake(path, family),
    );
    await t.test(`IPv${family}: what belongs to no connection is discarded`, () =>
      showStrangersDiscarded(path, family),
    );
    await t.test(`IPv${family}: curl fetches and puts as without it`, () => showBrowsing(path, nginx, family));
    await t.test(`IPv${family}: a handshake's last packet may be lost`, () => showLostAnswers(path, nginx, family));
    await t.test(`IPv${family}: it goes on answering in a flood of SYNs`, async (each) => {
      const flooded = await floodWithSyns(path, nginx, family);
      each.diagnostic(JSON.stringify(flooded));
      assertSurvived(flooded);
    });
  }
});

test('a connection that ran before goes on, and SYNs are answered from the first moment', { skip }, async () => {
  await using path = new FilteredPath('synsettling');
  using nginx = await Nginx.start(path);
  nginx.offer('slow', Buffer.alloc(6_000_000, 'slow'));
  path.slow(24);
  const running = path.run(path.client, 'curl', [...downloading, `${origin(4)}/slow`]);
  await path.packetsToServer(20);
  path.filter(kindId, {}, { settling: true });
  await showHandshake(path, 4);
  await path.packetsToServer(20);
  path.settle();
  await path.packetsToServer(20);
  assert.deepEqual(await running, { code: 0, output: '6000000' });
});

test('connections that the router has opened go on when the filter is gone', { skip }, async (t) => {
  await using path = new FilteredPath('syngone');
  using nginx = await Nginx.start(path);
  nginx.offer('slow', Buffer.alloc(4_000_000, 'slow'));
  path.slow(24);
  for (const family of families) {
    await t.test(`IPv${family}`, async () => {
      path.filter(kindId);
      const running = path.run(path.client, 'curl', [...downloading, `${origin(family)}/slow`]);
      await path.packetsToServer(20);
      // Another filter, which needs no connections: what it does not need, conntrack does not see.
      path.filter(22);
      await path.packetsToServer(20);
      assert.deepEqual(await running, { code: 0, output: '4000000' });
    });
  }
});
