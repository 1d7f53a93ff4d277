/**
 * The server that a benchmark measures, as a process of its own: a real control plane with its embedded, durable
 * PostgreSQL in a fresh directory. Tells its parent where it is; ends when the parent disconnects.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '@levee/server/main.ts';
import { pino } from 'pino';

const dataDirectory = mkdtempSync(join(tmpdir(), 'levee-bench-'));
const started = await startServer({
  listen: { host: '127.0.0.1', port: 0 },
  dataDirectory,
  // Counted as usual, and never reached.
  rateLimit: 100_000_000,
  log: pino({ level: 'warn' }, pino.destination(2)),
});
if (!started.ok) throw new Error(started.message);
const { server } = started;
process.send?.({ address: server.address, operatorKey: server.newOperatorKey, database: server.database.address });
process.on('message', (ask: { collect: boolean }) => {
  if (ask.collect) global.gc?.();
  process.send?.({ rssBytes: process.memoryUsage().rss });
});
process.on('disconnect', async () => {
  await server.close();
  rmSync(dataDirectory, { recursive: true, force: true });
  process.exit(0);
});
