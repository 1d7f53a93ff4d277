import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ownDirectory } from '../testing/directory.ts';
import { enroll } from './enroll.ts';

/** Takes one token, once. */
async function enrolling(t: TestContext, token: string): Promise<string> {
  let spent = false;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { token: string };
    if (request.url !== '/agent/v1/enroll' || body.token !== token || spent) {
      response.writeHead(401).end('{"error":"invalid_api_key","message":"the token is unknown or spent"}');
      return;
    }
    spent = true;
    response.end('{"router_uuid":"u","name":"r1","location":"here","key":"lv_r_secret_000000"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a token buys a key once, and only the owner can read it', async (t) => {
  const directory = join(ownDirectory(t), 'state');
  const address = await enrolling(t, 'good');
  const first = await enroll(['http://127.0.0.1:1', address], 'good', directory);
  assert.deepEqual(first, {
    ok: true,
    router: { uuid: 'u', name: 'r1', location: 'here' },
    keyFile: join(directory, 'router.key'),
  });
  assert.equal(readFileSync(join(directory, 'router.key'), 'utf8'), 'lv_r_secret_000000\n');
  assert.equal(statSync(join(directory, 'router.key')).mode & 0o777, 0o600);
  const second = await enroll([address], 'good', directory);
  assert.deepEqual(second, { ok: false, refused: true, reason: `${address}: the token is unknown or spent` });
  assert.equal(readFileSync(join(directory, 'router.key'), 'utf8'), 'lv_r_secret_000000\n');
});

test('a control plane that is not there is told apart from one that refuses', async (t) => {
  const directory = join(ownDirectory(t), 'state');
  const outcome = await enroll(['http://127.0.0.1:1'], 'good', directory);
  assert.deepEqual(outcome, { ok: false, refused: false, reason: 'http://127.0.0.1:1: ECONNREFUSED' });
  assert.equal(existsSync(directory), false);
});
