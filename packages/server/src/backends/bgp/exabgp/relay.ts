/**
 * What an ExaBGP runs as its process: takes commands from the control plane over a unix socket, hands them to ExaBGP on
 * standard output and its answers back. It remembers what it announced for as long as it runs, so that a control
 * plane that comes back is told what there is. Never withdraws anything by itself: routes outlive the control plane.
 */
import { connect, type Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { readLines } from './lines.ts';
import { type FromRelay, readToRelay, routesALine, type ToRelay } from './relay-messages.ts';

export interface RelayOptions {
  readonly socketPath: string;
  /** From and to ExaBGP. */
  readonly input: Readable;
  readonly output: Writable;
  readonly retryMilliseconds?: number;
}

const silenceMilliseconds = 10_000;

/** Resolves when ExaBGP closes its end; throws when it leaves a command without an answer, to be run anew by it. */
export async function runRelay({ socketPath, input, output, retryMilliseconds = 50 }: RelayOptions): Promise<void> {
  const routes = new Map<string, { readonly content: string; readonly withdraw: string }>();
  const waiting: ((taken: boolean) => void)[] = [];
  let over = false;
  let heardAt = Date.now();
  const { promise: lost, reject: lose } = Promise.withResolvers<never>();
  let socket: Socket | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function execute({ id, commands }: ToRelay): Promise<FromRelay> {
    const refused: string[] = [];
    await Promise.all(
      commands.map(async ({ key, content, announce, withdraw }) => {
        const taken = await new Promise<boolean>((resolve) => {
          if (waiting.length === 0) heardAt = Date.now();
          waiting.push(resolve);
          output.write(`${announce ?? withdraw}\n`);
        });
        // One that it does not have is withdrawn already.
        if (announce === undefined) routes.delete(key);
        else if (taken) routes.set(key, { content, withdraw });
        else refused.push(key);
      }),
    );
    return { type: 'done', id, refused };
  }

  function open(): void {
    if (over) return;
    const opened = connect(socketPath);
    socket = opened;
    const send = (message: FromRelay) => void opened.write(`${JSON.stringify(message)}\n`);
    opened.once('connect', () => {
      const all = [...routes].map(([key, { content, withdraw }]) => [key, content, withdraw] as const);
      let from = 0;
      for (; from + routesALine < all.length; from += routesALine) {
        send({ type: 'hello', routes: all.slice(from, from + routesALine), more: true });
      }
      send({ type: 'hello', routes: all.slice(from), more: false });
    });
    const leave = () => void opened.destroy();
    readLines(
      opened,
      (line) => {
        const request = readToRelay(line);
        // What serves the socket is no control plane: nothing of it is ExaBGP's.
        if (request === undefined) leave();
        else void execute(request).then(send);
      },
      leave,
    );
    opened.on('error', () => {});
    opened.once('close', () => {
      if (!over) timer = setTimeout(open, retryMilliseconds);
    });
  }

  open();
  readLines(
    input,
    (line) => {
      heardAt = Date.now();
      const text = line.trim();
      if (text === 'done' || text.startsWith('{ "answer": "done"')) waiting.shift()?.(true);
      else if (text === 'error' || text.startsWith('{ "answer": "error"')) waiting.shift()?.(false);
    },
    () => lose(new Error('ExaBGP writes a line without an end')),
  );
  // A command that makes ExaBGP stumble has no answer, and all that follow would be taken for another's.
  const watch = setInterval(() => {
    if (waiting.length > 0 && Date.now() - heardAt > silenceMilliseconds) lose(new Error('ExaBGP does not answer'));
  }, 500);
  try {
    await Promise.race([new Promise<void>((resolve) => input.once('end', resolve)), lost]);
  } finally {
    over = true;
    clearInterval(watch);
    clearTimeout(timer);
    socket?.destroy();
  }
}
