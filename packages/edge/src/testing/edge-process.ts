/**
 * An edge in a process of its own, for the tests that kill one: settings as JSON in the last argument; writes one line
 * when it is up.
 */
import { pino } from 'pino';
import { type EdgeConfig, startEdge } from '../main.ts';

const settings = JSON.parse(process.argv.at(-1) ?? '{}') as Omit<EdgeConfig, 'logger'>;
const edge = await startEdge({
  ...settings,
  logger: pino({ level: process.env.EDGE_LOG ?? 'silent' }, pino.destination(2)),
});
process.on('SIGTERM', () => void edge.stop().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ up: true, ...edge.enforcement, ...edge.statistics })}\n`);
