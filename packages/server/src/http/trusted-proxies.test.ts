import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Api, createApi } from './api.ts';
import { type ApiFixture, type Holder, nowhere, silent, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let user: Holder;
let bound: string;
const folder = mkdtempSync(join(tmpdir(), `levee-proxy-${process.pid}-`));
const socketPath = join(folder, 'control.sock');

before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
  bound = await api.key(user.uuid, { sources: ['192.0.2.0/24', '2001:db8::/32'] });
});
after(async () => {
  await api.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function behind(trustedProxies: readonly string[] | undefined, work: (port: number) => Promise<void>) {
  const other: Api = createApi({
    pool: api.database.pool,
    states: nowhere,
    wake: () => {},
    waitApplied: async () => 'not-enforced',
    routersChanged: async () => {},
    log: silent,
    isReady: async () => true,
    trustedProxies,
  });
  const { port } = await other.listen({ host: '127.0.0.1', port: 0 }, socketPath);
  try {
    await work(port);
  } finally {
    await other.close(100);
  }
}

function status(at: { port: number } | { socketPath: string }, forwarded: string | undefined): Promise<number> {
  const headers = { 'x-api-key': bound, ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }) };
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ ...at, host: '127.0.0.1', path: '/v1/whoami', headers }, (incoming) =>
      incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0)),
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

test('X-Forwarded-For counts for nothing unless it comes from a trusted proxy', async () => {
  for (const trusted of [undefined, [], ['198.51.100.0/24']]) {
    await behind(trusted, async (port) => {
      for (const forwarded of [undefined, '192.0.2.7', '127.0.0.1, 192.0.2.7']) {
        assert.equal(await status({ port }, forwarded), 403, `${trusted} ${forwarded}`);
      }
    });
  }
});

test('behind trusted proxies the address is the rightmost that is none of theirs, and what is left of it is not believed', async () => {
  await behind(['127.0.0.0/8', '198.51.100.7'], async (port) => {
    const expected: readonly [string | undefined, number][] = [
      ['192.0.2.7', 200],
      ['2001:db8::5', 200],
      ['192.0.2.7, 198.51.100.7', 200],
      ['203.0.113.9, 192.0.2.7, 127.0.0.2', 200],
      // Written by the client itself, before the proxy added where it came from.
      ['192.0.2.7, 203.0.113.9', 403],
      ['192.0.2.7, 203.0.113.9, 198.51.100.7', 403],
      ['192.0.2.7, nonsense', 403],
      ['192.0.2.7:4711', 403],
      ['', 403],
      [undefined, 403],
    ];
    for (const [forwarded, wanted] of expected) assert.equal(await status({ port }, forwarded), wanted, forwarded);
  });
});

test('a unix socket has no address and is no trusted proxy', async () => {
  await behind(['127.0.0.0/8', '0.0.0.0/0', '::/0'], async () => {
    assert.equal(await status({ socketPath }, '192.0.2.7'), 403);
    assert.equal(await status({ socketPath }, undefined), 403);
  });
});
