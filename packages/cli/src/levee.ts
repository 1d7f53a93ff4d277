#!/usr/bin/env node
/** The `levee` command: reads its arguments, runs one subcommand, and says in one sentence what went wrong. */
import { CommandFailure } from './output.ts';
import { createProgram } from './program.ts';
import { isSupervised, tellSupervisor } from './supervise/messages.ts';

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  if (!(error instanceof CommandFailure)) throw error;
  if (isSupervised()) await tellSupervisor({ type: 'failed', message: error.message });
  else process.stderr.write(`levee: ${error.message}\n`);
  process.exit(error.exitCode);
}
