import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEY_RANDOM_BYTES, makeKey } from '@levee/core/account/key.ts';
import type pg from 'pg';
import { createKeyRing } from './authentication.ts';

const key = makeKey('user', new Uint8Array(KEY_RANDOM_BYTES).fill(7));
const row = {
  uuid: 'k',
  account_uuid: 'a',
  read_only: false,
  sources: null,
  operations: null,
  expires_at: null,
  role: 'user',
  provider_uuid: 'p',
};

/** Stands for the database: counts what reaches it. */
function database(rows: readonly object[]) {
  const statements: string[] = [];
  const pool = {
    query: async ({ name, values: [hashes] }: { name: string; values: [readonly Buffer[]] }) => {
      statements.push(name);
      return { rows: hashes.flatMap((hash) => rows.map((each) => ({ ...each, hash }))) };
    },
  } as unknown as pg.Pool;
  return { pool, statements };
}

test('a key whose form or checksum is wrong never reaches the database', async () => {
  const { pool, statements } = database([row]);
  const ring = createKeyRing(pool);
  const swapped = key.slice(0, 10) + key[11] + key[10] + key.slice(12);
  const router = makeKey('router', new Uint8Array(KEY_RANDOM_BYTES).fill(9));
  for (const wrong of [
    key.slice(0, -1),
    `${key}0`,
    key.replace('lv_u', 'lv_p'),
    key.toLowerCase(),
    swapped === key ? 'x' : swapped,
    router,
    'x',
    'a'.repeat(500),
  ]) {
    const reply = await ring.authenticate(wrong, '127.0.0.1');
    assert.deepEqual(reply, { ok: false, failure: { code: 'invalid_api_key', details: [] } }, wrong);
  }
  assert.equal((await ring.authenticate(undefined, '127.0.0.1')).ok, false);
  assert.deepEqual(statements, []);
});

test('a key is looked up once a moment, however many requests come at once', async () => {
  let now = 1_000_000;
  const { pool, statements } = database([row]);
  const ring = createKeyRing(pool, { now: () => now });
  await Promise.all(Array.from({ length: 50 }, () => ring.authenticate(key, '127.0.0.1')));
  await ring.authenticate(key, '127.0.0.1');
  assert.equal(statements.length, 1);
  now += 500;
  await ring.authenticate(key, '127.0.0.1');
  assert.equal(statements.length, 2, 'no answer is trusted for half a second');
});

test('an unknown key is remembered as unknown for a moment, so that a flood of it costs little', async () => {
  const { pool, statements } = database([]);
  const ring = createKeyRing(pool);
  for (let time = 0; time < 20; time++) assert.equal((await ring.authenticate(key, '127.0.0.1')).ok, false);
  assert.equal(statements.length, 1);
});

test('sources hold for IPv4 written as IPv6 and never for a unix socket', async () => {
  const { pool } = database([{ ...row, sources: ['192.0.2.0/24', '2001:db8::/32', '198.51.100.7'] }]);
  const ring = createKeyRing(pool);
  const from = async (address: string | undefined) => (await ring.authenticate(key, address)).ok;
  assert.deepEqual(await Promise.all(['192.0.2.9', '::ffff:192.0.2.9', '2001:db8::1', '198.51.100.7'].map(from)), [
    true,
    true,
    true,
    true,
  ]);
  assert.deepEqual(
    await Promise.all(['192.0.3.9', '::ffff:192.0.3.9', '2001:db9::1', '198.51.100.8', '', undefined].map(from)),
    [false, false, false, false, false, false],
  );
});

test('a key that the operator chose is looked up whatever its form, and no other', async () => {
  const { pool, statements } = database([row]);
  const chosen = 'a-passphrase-that-somebody-chose-long';
  const ring = createKeyRing(pool, { anyForm: chosen });
  assert.equal((await ring.authenticate(chosen, undefined)).ok, true);
  assert.equal((await ring.authenticate(`${chosen}x`, undefined)).ok, false);
  assert.equal(statements.length, 1);
});
