/**
 * BIRD's control socket: one command, all of its answer. Knows nothing of what the answer says.
 */
import { connect, type Socket } from 'node:net';

export interface BirdSocket {
  /** The lines of the answer, without their codes. Throws with BIRD's words when it refuses, and when it goes away. */
  ask(command: string): Promise<string[]>;
  close(): void;
}

interface Waiting {
  readonly lines: string[];
  readonly resolve: (lines: string[]) => void;
  readonly reject: (error: Error) => void;
}

/** A line that ends an answer begins with its code and a space: 0xxx done, 8xxx and 9xxx refused. */
const lineForm = /^(?:([0-9]{4})([ -])| |\+)?(.*)$/s;

export async function connectBird(path: string): Promise<BirdSocket> {
  const socket: Socket = connect(path);
  const waiting: Waiting[] = [];
  let rest = '';
  const hello = expectAnswer();
  function expectAnswer(): Promise<string[]> {
    return new Promise((resolve, reject) => waiting.push({ lines: [], resolve, reject }));
  }
  const fail = (error: Error) => {
    for (const each of waiting.splice(0)) each.reject(error);
  };
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('BIRD closed its control socket')));
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, code, separator, text = ''] = lineForm.exec(line) ?? [];
      const first = waiting[0];
      if (first === undefined) continue;
      if (text !== '') first.lines.push(text);
      if (code === undefined || separator !== ' ') continue;
      // Answers of several parts end with the first code that says so.
      if (!code.startsWith('0') && !code.startsWith('8') && !code.startsWith('9')) continue;
      waiting.shift();
      if (code.startsWith('0')) first.resolve(first.lines);
      else first.reject(new Error(`BIRD refuses: ${text}`));
    }
  });
  await hello;
  return {
    ask(command) {
      const answer = expectAnswer();
      socket.write(`${command}\n`);
      return answer;
    },
    close: () => socket.destroy(),
  };
}
