/**
 * Links, addresses and routes by ip(8): listings as JSON, changes as one batch. Owns the program's options and the
 * reading of what it writes. Never goes through a shell; the lines go in by standard input.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { formatAddress } from '@levee/core/net/address.ts';
import { hostMask } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { type IpRecord, readLinks, readTaken } from './listing.ts';
import type { LinkDriver, TakenRoute } from './port.ts';

/** A batch of a thousand deletions takes 15 s, on a busy machine longer. */
const patienceMilliseconds = 120_000;
/** What ip ends with when a line of a batch failed and the others were run nevertheless. */
const someFailed = 1;

interface Ended {
  readonly status: number | null;
  readonly output: string;
  readonly message: string;
}

/** `protocol`: the number that routes of ours carry. */
export function openLinkCommand(protocol: number): LinkDriver {
  return {
    async look() {
      // Of all tables ip lists both families at once, of one table a family.
      const [links, routes] = await Promise.all([
        list(['-details', '-json', 'address', 'show']),
        list(['-json', 'route', 'show', 'table', 'all', 'proto', String(protocol)]),
      ]);
      return readLinks(links, routes);
    },
    async isLocal(address) {
      // Without any way ip ends with an error.
      const { status, output } = await ip(['-json', 'route', 'get', address], '');
      const [found] = status === 0 ? (JSON.parse(output) as IpRecord[]) : [];
      return found?.type === 'local';
    },
    async taken(prefixes) {
      const asked = prefixes.flatMap((prefix) => endsOf(prefix).map((address) => ({ prefix, address })));
      const { output, failures } = await batch(
        asked.map(({ address }) => `route get fibmatch ${address}`),
        ['-json', '-details'],
      );
      const taken = new Map<string, TakenRoute>();
      const answered = new Set<string>();
      asked.forEach(({ prefix }, at) => {
        if (!isDiscarded(failures[at])) answered.add(prefix);
        else taken.set(prefix, { discards: true });
      });
      for (const prefix of answered) taken.delete(prefix);
      const wanted = new Set(prefixes);
      for (const line of output.split('\n')) {
        if (line.trim() === '') continue;
        for (const record of JSON.parse(line) as IpRecord[]) {
          const found = readTaken(record);
          if (found && wanted.has(found.prefix)) taken.set(found.prefix, found.route);
        }
      }
      return taken;
    },
    names: () =>
      readFileSync('/proc/thread-self/net/dev', 'utf8')
        .split('\n')
        .flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []),
    run: async (lines) => (await batch(lines, [])).failures,
  };
}

interface Batch {
  readonly output: string;
  /** For each line. */
  readonly failures: readonly (string | undefined)[];
}

/** Lines in one program; one that fails keeps no other back. */
async function batch(lines: readonly string[], options: readonly string[]): Promise<Batch> {
  if (lines.length === 0) return { output: '', failures: [] };
  const { status, output, message } = await ip([...options, '-force', '-batch', '-'], `${lines.join('\n')}\n`);
  if (status === 0) return { output, failures: lines.map(() => undefined) };
  if (status !== someFailed) throw new Error(`ip gave up: ${message || `status ${status}`}`);
  return { output, failures: failuresOf(message, lines.length) };
}

/** First and last address: what only some of it goes to, a narrower route, may cover one of them. */
function endsOf(prefix: string): readonly string[] {
  const { family, value, length } = prefixFromTrusted(prefix);
  const last = value + hostMask(family, length);
  return [...new Set([value, last])].map((each) => formatAddress({ family, value: each }));
}

/** What the kernel answers by routes of the types blackhole, unreachable and prohibit; without any route it is another. */
function isDiscarded(failure: string | undefined): boolean {
  return failure !== undefined && /Invalid argument|No route to host|Permission denied/.test(failure);
}

async function list(args: readonly string[]): Promise<readonly IpRecord[]> {
  const { status, output, message } = await ip(args, '');
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${message || `status ${status}`}`);
  return output.trim() === '' ? [] : (JSON.parse(output) as IpRecord[]);
}

/** What is said before "Command failed -:N" belongs to line N, counted from 1. */
export function failuresOf(message: string, count: number): readonly (string | undefined)[] {
  const failures: (string | undefined)[] = Array.from({ length: count });
  let said: string[] = [];
  for (const line of message.split('\n')) {
    const number = /^Command failed -:(\d+)$/.exec(line)?.[1];
    if (number === undefined) {
      said.push(line.replace(/^(?:RTNETLINK answers|Error): /, '').trim());
      continue;
    }
    failures[Number(number) - 1] = said.filter((each) => each !== '').join('; ') || 'ip did not say why';
    said = [];
  }
  return failures;
}

function ip(args: readonly string[], input: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn('ip', args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: patienceMilliseconds,
      killSignal: 'SIGKILL',
      env: { ...process.env, LC_ALL: 'C' },
    });
    const output: Buffer[] = [];
    const message: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => message.push(chunk));
    child.on('error', (error) => reject(new Error(`ip (Debian package iproute2) cannot be run: ${error.message}`)));
    child.on('close', (status) =>
      resolve({
        status,
        output: Buffer.concat(output).toString(),
        message: Buffer.concat(message).toString().trim(),
      }),
    );
    // What ends early closes its input; what it says arrives by `close`.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
