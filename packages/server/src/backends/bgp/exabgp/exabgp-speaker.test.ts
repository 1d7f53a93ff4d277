/** The socket that ExaBGP's process connects to, and whoever else can open it. A real ExaBGP is in e2e/bgp. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, test } from 'node:test';
import { waitUntil } from '../../../store/testing/wait-until.ts';
import type { BgpSpeaker, SpeakerSession } from '../port.ts';
import { routeOfFields } from '../testing/flowrules.ts';
import { createExabgpSpeaker } from './exabgp-speaker.ts';
import { runRelay } from './relay.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-exabgp-socket-${process.pid}-`));
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

async function reasonOf(speaker: BgpSpeaker): Promise<string | undefined> {
  const connected = await speaker.connect(() => {});
  return connected.ok ? undefined : connected.reason;
}

async function serve(name: string): Promise<{ speaker: BgpSpeaker; path: string }> {
  const path = join(folder, name);
  const speaker = createExabgpSpeaker(path);
  ends.push(() => speaker.close());
  assert.match((await reasonOf(speaker)) ?? '', /nothing came to the socket/);
  return { speaker, path };
}

/** Resolves when it was closed there. */
async function say(path: string, ...parts: readonly string[]): Promise<void> {
  const socket = connect(path);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.resume();
  for (const part of parts) socket.write(part);
  await closed;
}

/** A relay whose ExaBGP takes everything; its memory begins empty. */
async function relayAt(path: string, speaker: BgpSpeaker): Promise<SpeakerSession> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  output.on('data', (text: Buffer) => {
    for (const line of text.toString().split('\n')) if (line !== '') input.write('done\n');
  });
  const running = runRelay({ socketPath: path, input, output, retryMilliseconds: 5 });
  ends.push(async () => {
    input.end();
    await running;
  });
  return sessionOf(speaker);
}

async function sessionOf(speaker: BgpSpeaker): Promise<SpeakerSession> {
  let session: SpeakerSession | undefined;
  await waitUntil(async () => {
    const connected = await speaker.connect(() => {});
    if (connected.ok) session = connected.session;
    return connected.ok;
  }, 'the relay is there');
  assert.ok(session !== undefined);
  return session;
}

const hostile: [what: string, line: string][] = [
  ['no JSON', 'GET / HTTP/1.1\n'],
  ['nothing', 'null\n'],
  ['a number', '7\n'],
  ['no type', '{}\n'],
  ['half a greeting', '{"type":"hello"}\n'],
  ['routes that are none', '{"type":"hello","more":false,"routes":[7]}\n'],
  ['an answer of no shape', '{"type":"done","id":"x","refused":{}}\n'],
  ['deep', `${'['.repeat(100_000)}\n`],
];

test('whatever is written into the socket closes that connection alone, and it is said what came', async () => {
  const { speaker, path } = await serve('hostile.sock');
  await waitUntil(async () => {
    await say(path, hostile[0]?.[1] ?? '');
    return /no `levee exabgp`/.test((await reasonOf(speaker)) ?? '');
  }, 'it is said');
  const session = await relayAt(path, speaker);
  for (const [, line] of hostile) await say(path, line);
  const route = routeOfFields({ dst: '198.18.0.5', components: {}, action: 'discard' });
  assert.deepEqual(await session.announce([route]), { ok: true, refused: new Map() });
  const listed = await session.list();
  assert.ok(listed.ok);
  assert.deepEqual([...listed.ours], [[route.key, route.content]]);
});

test('a line without an end is closed at a bound, not collected', async () => {
  const { speaker, path } = await serve('endless.sock');
  const before = process.memoryUsage().rss;
  await say(path, ...Array.from({ length: 64 }, () => 'x'.repeat(1024 * 1024)));
  assert.match((await reasonOf(speaker)) ?? '', /no `levee exabgp`/);
  assert.ok(process.memoryUsage().rss - before < 400 * 1024 * 1024);
});

test('a relay that remembers 10 000 routes tells a control plane that comes back of all, and they can be withdrawn', async () => {
  const { speaker, path } = await serve('many.sock');
  const first = await relayAt(path, speaker);
  const routes = Array.from({ length: 10_000 }, (_, at) =>
    routeOfFields({ dst: `198.18.${at >> 8}.${at & 255}`, components: { protocol: 'udp' }, action: 'discard' }),
  );
  assert.deepEqual(await first.announce(routes), { ok: true, refused: new Map() });
  await speaker.close();
  await first.ended;
  const next = createExabgpSpeaker(path);
  ends.push(() => next.close());
  const second = await sessionOf(next);
  const listed = await second.list();
  assert.ok(listed.ok);
  assert.equal(listed.ours.size, routes.length);
  assert.ok((await second.withdraw(routes)).ok);
  const left = await second.list();
  assert.ok(left.ok);
  assert.equal(left.ours.size, 0);
});

test('a relay closes a connection to what is no control plane, hands nothing of it to ExaBGP, and tries again', async () => {
  const path = join(folder, 'impostor.sock');
  const lines = [
    'no JSON\n',
    '{"id":1}\n',
    '{"id":1,"commands":[{"key":"k","content":"","withdraw":"a\\nshutdown"}]}\n',
  ];
  let come = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(lines[come++ % lines.length] ?? '');
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const [input, output] = [new PassThrough(), new PassThrough()];
  let told = '';
  output.on('data', (text: Buffer) => {
    told += text.toString();
  });
  const running = runRelay({ socketPath: path, input, output, retryMilliseconds: 5 });
  await waitUntil(() => come > 2 * lines.length, 'it has tried again');
  input.end();
  await running;
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  assert.equal(told, '');
});
