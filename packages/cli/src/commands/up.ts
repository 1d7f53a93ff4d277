/** Owns `levee up`: everything on this machine until it is told to stop, and what the person who starts it is told. */
import { resolve } from 'node:path';
import closeWithGrace from 'close-with-grace';
import type { Loaded } from '../config/load.ts';
import type { Output } from '../output.ts';
import { onStopSignals } from '../stop-signals.ts';
import { type Running, startInstallation } from '../supervise/installation.ts';
import { version } from '../version.ts';
import { renderUp } from './up-summary.ts';

/** Longer than the children are given together. */
const STOP_MILLISECONDS = 40_000;

export async function up(loaded: Loaded, output: Output): Promise<void> {
  const startedAt = performance.now();
  output.progress(`starting Levee ${version} in ${resolve(loaded.config.dataDirectory)} …`);
  const stopping = new AbortController();
  let running: Running | undefined;
  const skip = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
  const { close } = closeWithGrace({ delay: STOP_MILLISECONDS, logger: false, skip: [...skip] }, async ({ err }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    stopping.abort();
    await running?.stop();
  });
  const stop = (signal: string) => {
    const kept = running?.enforcement.mode === 'kernel' ? '; the rules in the kernel stay' : '';
    output.progress(`${signal}: stopping${kept}`);
    close();
  };
  // The children notice that we are gone, and end themselves.
  onStopSignals(stop, () => process.exit(1));
  running = await startInstallation(loaded, output, stopping.signal);
  const { text, value } = renderUp(running, loaded.config, (performance.now() - startedAt) / 1000);
  output.result(text, value);
}
