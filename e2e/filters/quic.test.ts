/** Guarantees of filter kind 23 with ngtcp2's client and server of Debian at both ends of the router, and with strangers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families } from './filtered-path.ts';
import { Ngtcp2 } from './ngtcp2.ts';
import { junk, Strangers } from './strangers.ts';

const skip = labObstacle() ?? false;
const kindId = 23;
const small = Buffer.from('what is fetched over QUIC\n');
const large = Buffer.alloc(6_000_000, 'what is fetched over QUIC; ');

test('QUIC works through its filter, and what is not of it is discarded', { skip }, async (t) => {
  await using path = new FilteredPath('quic');
  using quic = await Ngtcp2.start(path);
  using strangers = new Strangers(path);
  quic.offer('small', small);
  quic.offer('large', large);
  path.filter(kindId);

  for (const family of families) {
    await t.test(`IPv${family}: files are fetched, with version 1`, async () => {
      assert.deepEqual(await quic.fetch(family, 'small'), small);
      assert.deepEqual(await quic.fetch(family, 'large'), large);
      assert.equal(path.discarded(), 0);
    });
  }

  await t.test('a session goes on with data in its first flight (0-RTT)', async () => {
    assert.deepEqual(await quic.fetch(4, 'small', quic.sessionOptions()), small);
    assert.deepEqual(await quic.fetch(4, 'small', quic.sessionOptions()), small);
    assert.equal(path.discarded(), 0);
  });

  await t.test("a client's port may change while it fetches", async () => {
    assert.deepEqual(await quic.fetch(4, 'large', ['--change-local-addr=10ms']), large);
    assert.equal(path.discarded(), 0);
  });

  await t.test(
    'strangers are discarded: short headers, what comes late in a connection, other versions, noise',
    async () => {
      const before = path.discarded();
      assert.equal(await strangers.send(443, junk(200, 60, '4d')), 0);
      assert.equal(await strangers.send(443, junk(100, 120, 'ef00000001')), 0);
      assert.equal(await strangers.send(443, junk(100, 1200, 'c3ff00001d08')), 0);
      assert.equal(await strangers.send(443, junk(100, 1199, 'c30000000108')), 0);
      assert.equal(await strangers.send(443, junk(100, 1200, '0')), 0);
      assert.equal(path.discarded() - before, 600);
      assert.equal(await strangers.send(443, junk(100, 1200, 'c30000000108')), 100, 'first packets pass');
    },
  );

  await t.test('a version that it does not know gets no connection', async () => {
    assert.equal(await quic.fetch(4, 'small', ['--version=v2draft'], 1), undefined);
  });
});

test('a QUIC connection that ran before its filter goes on', { skip }, async () => {
  await using path = new FilteredPath('quicsettling');
  using quic = await Ngtcp2.start(path);
  const content = Buffer.alloc(8_000_000, 'slow');
  quic.offer('slow', content);
  path.slow(32);
  const fetched = quic.fetch(4, 'slow', [], 20);
  await path.packetsToServer(20);
  path.filter(kindId, {}, { settling: true });
  await path.packetsToServer(20);
  path.settle();
  await path.packetsToServer(20);
  assert.deepEqual(await fetched, content);
  assert.equal(path.discarded(), 0);
});
