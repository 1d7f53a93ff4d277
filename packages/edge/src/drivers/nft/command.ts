/**
 * nftables through the `nft` command, one process per transaction: what is left when libnftables cannot be loaded.
 * Never goes through a shell; the text goes in by standard input.
 */
import { spawn } from 'node:child_process';
import type { NftDriver, NftResult } from './port.ts';
import { createSerial } from './serial.ts';

/** Longer than a full load of some hundred thousand rules takes on a slow machine. */
const patienceMilliseconds = 120_000;

export interface CommandOutcome {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly message: string;
}

/** Runs `nft` with these arguments; rejects only when it cannot be started. */
export function runNft(args: readonly string[], input: string): Promise<CommandOutcome> {
  return new Promise((resolve, reject) => {
    const child = spawn('nft', args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: patienceMilliseconds,
      // Its words are read.
      env: { ...process.env, LC_ALL: 'C' },
      killSignal: 'SIGKILL',
    });
    const output: Buffer[] = [];
    const message: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => message.push(chunk));
    child.on('error', reject);
    child.on('close', (status, signal) =>
      resolve({
        status,
        signal,
        output: Buffer.concat(output).toString(),
        message: Buffer.concat(message).toString().trim(),
      }),
    );
    // A command that refuses early closes its input; what it says arrives by `close`.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

export function openNftCommand(version: string): NftDriver {
  const lane = createSerial();
  const call = (args: readonly string[], input: string): Promise<NftResult> =>
    lane.run(async () => {
      const { status, signal, output, message } = await runNft(args, input);
      if (status === 0) return { ok: true, output };
      return { ok: false, message: message || `nft ended with ${signal ?? status}` };
    });
  return {
    name: 'command',
    version,
    apply: (text) => call(['-f', '-'], text),
    check: (text) => call(['-c', '-f', '-'], text),
    list: (what) => call(['-f', '-'], `list ${what}\n`),
    close: () => lane.idle(),
  };
}
