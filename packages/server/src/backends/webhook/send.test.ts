import assert from 'node:assert/strict';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { Resolved, ResolveHost } from './resolve-host.ts';
import { resolveHost } from './resolve-host.ts';
import { type Attempt, send } from './send.ts';
import { createTargetJudge } from './target.ts';
import { type Certificate, withAuthority } from './testing/certificates.ts';
import { type Receiver, startReceiver } from './testing/receiver.ts';

const closing: (() => Promise<unknown>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

async function receiver(host?: string): Promise<Receiver> {
  const started = await startReceiver(0, host);
  closing.push(started.close);
  return started;
}

const names =
  (addresses: Readonly<Record<string, readonly string[]>>): ResolveHost =>
  async (host) => {
    const found = addresses[host];
    return found ? { ok: true, addresses: found } : { ok: false, exists: false, reason: 'the name has no address' };
  };

interface Where {
  readonly allow?: readonly string[];
  readonly resolve?: ResolveHost;
  readonly milliseconds?: number;
}

async function attempt(
  url: string,
  { allow = ['127.0.0.0/8', '::1'], resolve, milliseconds }: Where = {},
): Promise<Attempt> {
  const judge = createTargetJudge({ allow, ...(resolve && { resolve }) });
  const message = {
    url: new URL(url),
    headers: { 'content-type': 'application/json', 'webhook-id': 'x' },
    body: '{"é":1}',
  };
  const made = await send(message, judge, new AbortController().signal, { milliseconds });
  assert.ok(made !== 'not admitted');
  return made;
}

test('what is sent arrives whole, and a status from 200 to 299 is a delivery', async () => {
  const target = await receiver();
  for (const status of [200, 204, 299]) {
    target.answer((response) => response.writeHead(status).end());
    assert.deepEqual(await attempt(target.url), { delivered: true, status });
  }
  const [first] = target.received;
  assert.deepEqual([first?.path, first?.text, first?.headers['webhook-id']], ['/hook', '{"é":1}', 'x']);
  assert.equal(first?.headers['content-length'], '8');
});

test('an address that is not public is not connected to, however it is written', async () => {
  const target = await receiver();
  const port = target.port;
  const urls = [`http://127.0.0.1:${port}/`, `http://2130706433:${port}/`, `http://[::ffff:127.0.0.1]:${port}/`];
  for (const url of [...urls, `http://[::1]:${port}/`, `http://0.0.0.0:${port}/`, `http://[::]:${port}/`]) {
    const refused = await attempt(url, { allow: [] });
    assert.equal(refused.delivered, false);
    assert.match(refused.error ?? '', /webhooks reach public addresses only/, url);
  }
  assert.equal(target.received.length, 0);
});

test('all addresses of a name are judged: one that is private refuses it', async () => {
  const target = await receiver();
  const resolve = names({ 'mixed.example': ['127.0.0.1', '10.0.0.7'], 'one.example': ['127.0.0.1'] });
  const refused = await attempt(`http://mixed.example:${target.port}/`, { resolve });
  assert.equal(
    refused.error,
    'mixed.example resolves to 10.0.0.7, which is a private address (10.0.0.0/8); webhooks reach public addresses only',
  );
  assert.equal(target.received.length, 0);
  assert.equal((await attempt(`http://one.example:${target.port}/`, { resolve })).delivered, true);
  assert.equal(target.received[0]?.headers.host, `one.example:${target.port}`);
});

test('a name is resolved once an attempt, and only what was judged then is connected to', async () => {
  const [public_, private_] = [await receiver(), await receiver('127.0.0.2')];
  let asked = 0;
  // Another answer each time, as a hostile name server gives: first where it may go, then where it may not.
  const resolve: ResolveHost = async (): Promise<Resolved> => {
    asked++;
    return { ok: true, addresses: [asked % 2 === 1 ? '127.0.0.1' : '127.0.0.2'] };
  };
  const where = { allow: ['127.0.0.1'], resolve };
  const first = await attempt(`http://rebound.example:${public_.port}/`, where);
  assert.deepEqual([first.delivered, asked, public_.received.length], [true, 1, 1]);
  const second = await attempt(`http://rebound.example:${private_.port}/`, where);
  assert.match(second.error ?? '', /127\.0\.0\.2, which is a loopback address/);
  assert.deepEqual([second.delivered, asked, private_.received.length], [false, 2, 0]);
});

test('a redirect is not followed, not even to where it would be allowed', async () => {
  const [target, elsewhere] = [await receiver(), await receiver()];
  for (const status of [301, 302, 303, 307, 308]) {
    target.answer((response) => response.writeHead(status, { location: elsewhere.url }).end());
    const refused = await attempt(target.url);
    assert.deepEqual([refused.delivered, refused.status], [false, status]);
    assert.match(refused.error ?? '', /redirects are not followed/);
  }
  assert.equal(elsewhere.received.length, 0);
});

test('a failing status is told, with the patience that it asks for', async () => {
  const target = await receiver();
  target.answer((response) => response.writeHead(503, { 'retry-after': '120' }).end());
  const failed = await attempt(target.url);
  assert.deepEqual(failed, {
    delivered: false,
    status: 503,
    error: 'answered with status 503',
    retryAfterSeconds: 120,
  });
});

test('an answer without an end costs neither memory nor time', async () => {
  const target = await receiver();
  target.answer((response) => {
    response.writeHead(200);
    const more = setInterval(() => response.write('x'.repeat(65_536)), 1);
    response.on('close', () => clearInterval(more));
  });
  const begin = Date.now();
  assert.deepEqual(await attempt(target.url), { delivered: true, status: 200 });
  assert.ok(Date.now() - begin < 2_000);
});

/** A server that does with each connection what it is told, HTTP or not. Gives its port. */
function serve(on: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    on(socket);
  });
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
}
const on = (port: number, scheme = 'http') => `${scheme}://127.0.0.1:${port}/`;

test('whoever does not answer, or not in HTTP, or at all, is told in a sentence', async () => {
  const silent = await serve(() => {});
  const garbled = await serve((socket) => socket.end('SSH-2.0-OpenSSH_9.2p1 Debian\r\n'));
  const rude = await serve((socket) => socket.on('data', () => socket.destroy()));
  const nobody = await receiver();
  await nobody.close();
  assert.equal((await attempt(on(silent), { milliseconds: 300 })).error, 'no answer within 0.3 s');
  assert.equal((await attempt(on(garbled))).error, `127.0.0.1 does not speak HTTP on port ${garbled}`);
  assert.equal((await attempt(on(rude))).error, '127.0.0.1 ended the connection without an answer');
  assert.equal((await attempt(on(nobody.port))).error, `127.0.0.1 refuses connections to port ${nobody.port}`);
  const plain = await receiver();
  for (const port of [garbled, plain.port]) {
    const tls = await attempt(on(port, 'https'));
    assert.equal(tls.error, `127.0.0.1 does not speak TLS on port ${port}`);
  }
});

test('an answer that is no end, or another protocol, ends the attempt all the same', async () => {
  const ended = '127.0.0.1 ended the connection without an answer';
  const upgraded = {
    delivered: false,
    status: 101,
    error: 'answered with status 101: no other protocol than HTTP is spoken',
  };
  const late = 'no answer within 1 s';
  const answers: readonly [answer: string, keepsOpen: boolean, expected: object][] = [
    ['HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n', true, upgraded],
    ['HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n', false, upgraded],
    ['HTTP/1.1 101 \r\n\r\n', true, upgraded],
    ['HTTP/1.1 200 OK\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', false, { delivered: true, status: 200 }],
    ['HTTP/1.1 200 Connection established\r\n\r\n', false, { delivered: true, status: 200 }],
    ['HTTP/1.1 100 Continue\r\n\r\n', true, { error: late }],
    ['HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n'.repeat(1000), false, { error: ended }],
    ['HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n', true, { delivered: true, status: 204 }],
    ['HTTP/1.1 200 OK\r\nconte', false, { error: ended }],
    ['', false, { error: ended }],
    [
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`,
      true,
      { error: 'the header of what 127.0.0.1 answers is too large' },
    ],
  ];
  await Promise.all(
    answers.map(async ([answer, keepsOpen, expected]) => {
      let closed: Promise<unknown> | undefined;
      const port = await serve((socket) => {
        closed = new Promise((resolve) => socket.on('close', resolve));
        socket.once('data', () => (keepsOpen ? socket.write(answer) : socket.end(answer)));
      });
      const made = await attempt(on(port), { milliseconds: 1_000 });
      assert.partialDeepStrictEqual(made, expected, answer.slice(0, 80));
      await closed;
    }),
  );
});

test('https reaches a server whose certificate is good, and says of others what is wrong with it', async () => {
  await withAuthority(async (authority) => {
    const start = async (certificate: Certificate) => {
      const server = createTlsServer(certificate, (request, response) => {
        request.resume();
        request.on('end', () => response.writeHead(204).end());
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      closing.push(async () => server.close());
      return (server.address() as { port: number }).port;
    };
    const good = await start(await authority.issue('hooks.example'));
    const old = await start(await authority.issue('hooks.example', -1));
    const other = await start(await authority.issue('other.example'));
    const resolve = names({ 'hooks.example': ['127.0.0.1'] });
    const to = (port: number) => attempt(`https://hooks.example:${port}/hook?token=secret`, { resolve });
    const unknown = await to(good);
    assert.match(
      unknown.error ?? '',
      /^the certificate of hooks\.example is from an authority that is not trusted here/,
    );
    const usual = getCACertificates('default');
    setDefaultCACertificates([...usual, authority.cert]);
    try {
      assert.deepEqual(await to(good), { delivered: true, status: 204 });
      assert.equal((await to(old)).error, 'the certificate of hooks.example has expired');
      assert.equal((await to(other)).error, 'the certificate of hooks.example is not for that name');
    } finally {
      setDefaultCACertificates(usual);
    }
  });
});

test('a name server that does not answer costs the attempt its time and no more', async () => {
  const resolve: ResolveHost = () => new Promise(() => {});
  const late = await attempt('http://slow.example/', { resolve, milliseconds: 200 });
  assert.deepEqual(late, { delivered: false, error: 'no answer within 0.2 s' });
});

test('names that only this machine knows are found', async () => {
  const found = await resolveHost('localhost');
  assert.ok(found.ok && found.addresses.some((address) => address === '127.0.0.1' || address === '::1'));
});
