/** Owns `levee up`: everything on this machine until it is told to stop, and what the person who starts it is told. */
import { resolve } from 'node:path';
import closeWithGrace from 'close-with-grace';
import type { Loaded } from '../config/load.ts';
import type { Output } from '../output.ts';
import { type Running, startBoth } from '../supervise/both.ts';
import { version } from '../version.ts';
import { renderUp } from './up-summary.ts';

/** Longer than both children are given together. */
const STOP_MILLISECONDS = 40_000;

export async function up(loaded: Loaded, output: Output): Promise<void> {
  const startedAt = performance.now();
  output.progress(`starting Levee ${version} in ${resolve(loaded.config.dataDirectory)} …`);
  const stopping = new AbortController();
  let running: Running | undefined;
  closeWithGrace({ delay: STOP_MILLISECONDS, logger: false }, async ({ err, signal }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    if (signal) output.progress(`${signal}: stopping`);
    stopping.abort();
    await running?.stop();
  });
  running = await startBoth(loaded, output, stopping.signal);
  const { text, value } = renderUp(running, loaded.config, (performance.now() - startedAt) / 1000);
  output.result(text, value);
}
