/**
 * The sending side of bench/streams.ts, in a process of its own so that its memory can be read: Levee's agents on a
 * real database, or a bare node:http server that writes the same line to as many open answers.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEY_RANDOM_BYTES, makeKey } from '@levee/core/account/key.ts';
import { startReplica } from '@levee/server/agents/testing/replica.ts';
import { newUuid } from '@levee/server/store/new-uuid.ts';
import { seedProvider, seedRule } from '@levee/server/store/testing/seed.ts';
import { startTestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';

export interface Serving {
  readonly base: string;
  readonly keys: readonly string[];
}

export type Request = { readonly ask: 'change' } | { readonly ask: 'memory' } | { readonly ask: 'stop' };
/** `at`: milliseconds since 1970, with fractions, when the change was committed (or written, for the bare one). */
export type Answer = { readonly at: number; readonly streams: number; readonly residentBytes: number };

const [kind, count] = [process.argv[2], Number(process.argv[3])];
const clock = () => performance.timeOrigin + performance.now();
const answer = (streams: number, at = clock()) =>
  process.send?.({ at, streams, residentBytes: process.memoryUsage.rss() } satisfies Answer);

if (kind === 'levee') await serveLevee();
else await serveBare();

async function serveLevee(): Promise<void> {
  const postgres = await startTestPostgres();
  const database = await postgres.createDatabase();
  const keys = Array.from({ length: count }, () => makeKey('router', randomBytes(KEY_RANDOM_BYTES)));
  const location = newUuid();
  await database.pool.query(`insert into location (uuid, name) values ($1, 'here')`, [location]);
  await database.pool.query(
    `insert into router (uuid, name, location_uuid, key_hash, enrolled_at)
      select gen_random_uuid(), 'edge' || n, $1, hash, now() from unnest($2::bytea[]) with ordinality given (hash, n)`,
    [location, keys.map((key) => createHash('sha256').update(key).digest())],
  );
  const provider = await seedProvider(database.pool);
  for (let i = 0; i < 100; i++) await seedRule(database.pool, provider);
  const replica = await startReplica(database);
  process.on('message', async (request: Request) => {
    const { hub } = replica.agents;
    if (request.ask === 'change') {
      await seedRule(database.pool, provider);
      const at = clock();
      replica.tail.wake();
      answer(hub.streams, at);
    } else if (request.ask === 'memory') {
      await waitUntil(() => hub.streams === count, 'all streams', 60_000);
      answer(hub.streams);
    } else {
      await replica.stop();
      await postgres.stop();
      process.disconnect();
    }
  });
  process.send?.({ base: replica.base, keys } satisfies Serving);
}

async function serveBare(): Promise<void> {
  const open: ServerResponse[] = [];
  const server = createServer((_, response) => {
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"type":"hello"}\n{"type":"snapshot_end"}\n');
    open.push(response);
  });
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, resolve));
  const line = Buffer.from(
    `{"type":"changes","cursor":"1000.1000","upsert":[{"uuid":"${newUuid()}","sequence":1000,"dst":"198.18.0.1","protocol":"udp","action":"drop","priority":1000,"disabled":false}],"remove":[]}\n`,
  );
  process.on('message', async (request: Request) => {
    if (request.ask === 'stop') {
      server.closeAllConnections();
      server.close();
      process.disconnect();
      return;
    }
    const at = clock();
    if (request.ask === 'change') for (const response of open) response.write(line);
    answer(open.length, at);
  });
  const { port } = server.address() as AddressInfo;
  process.send?.({ base: `http://127.0.0.1:${port}`, keys: Array.from({ length: count }, () => '') } satisfies Serving);
}
