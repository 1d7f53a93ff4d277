import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createHttpClient, type HttpQuestion } from './http-client.ts';
import { ConnectionError } from './server-reach.ts';
import { makeFolder } from './testing/daemon.ts';

async function listening(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

const question = (url: string, more: Partial<HttpQuestion> = {}): HttpQuestion => ({
  method: 'PATCH',
  url: `${url}/zone`,
  headers: { 'x-api-key': 'k' },
  body: '{"a":1}',
  milliseconds: 2_000,
  ...more,
});

const echo: RequestListener = (asked, response) => {
  let body = '';
  asked.on('data', (chunk) => {
    body += chunk;
  });
  asked.on('end', () => response.end(`${asked.method} ${asked.url} ${asked.headers['x-api-key']} ${body}`));
};

test('a question is asked as given, over connections that are kept', async (t) => {
  const sockets = new Set<unknown>();
  const server = createServer(echo).on('connection', (socket) => sockets.add(socket));
  const url = `http://127.0.0.1:${await listening(t, server)}`;
  const client = createHttpClient(url);
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(await client.ask(question(url)), { status: 200, text: 'PATCH /zone k {"a":1}' });
  }
  assert.equal(sockets.size, 1);
  client.close();
  await assert.rejects(client.ask(question(url)), ConnectionError);
});

test('over TLS the certificate is judged, by name or address, and what is wrong with it is told', async (t) => {
  const folder = makeFolder('tls');
  t.after(folder.remove);
  const [key, cert] = [join(folder.path, 'key.pem'), join(folder.path, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  execFileSync('openssl', [...made, '-keyout', key, '-out', cert, ...subject], { stdio: 'pipe' });
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, echo);
  const port = await listening(t, server);
  const ask = async (url: string) => {
    const client = createHttpClient(url);
    return client.ask(question(url)).finally(() => client.close());
  };
  await assert.rejects(ask(`https://localhost:${port}`), /^Error: connection failed \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/);
  const usual = getCACertificates();
  setDefaultCACertificates([...usual, readFileSync(cert, 'utf8')]);
  t.after(() => setDefaultCACertificates(usual));
  for (const host of ['localhost', '127.0.0.1']) {
    assert.equal((await ask(`https://${host}:${port}`)).status, 200, host);
  }
});

test('an answer that does not end is given up in time, and a server that is gone is told', async (t) => {
  const server = createServer((_, response) => {
    response.write('begun');
  });
  t.after(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${await listening(t, server)}`;
  const client = createHttpClient(url);
  await assert.rejects(client.ask(question(url, { milliseconds: 300 })), /no answer within 0\.3 s/);
  client.close();
  const nobody = createHttpClient('http://127.0.0.1:1');
  await assert.rejects(nobody.ask(question('http://127.0.0.1:1')), /connection refused/);
  nobody.close();
});
