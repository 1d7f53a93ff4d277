/** Starts the processes that a benchmark measures, and makes a user with a key in a fresh installation. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

export interface MeasuredServer {
  readonly url: string;
  readonly operatorKey: string;
  readonly database: { readonly socketDirectory: string; readonly user: string; readonly database: string };
  readonly process: ChildProcess;
  /** Resident memory of the server's process, in bytes; collecting first disturbs whatever runs. */
  memory(collect: boolean): Promise<number>;
  stop(): Promise<void>;
}

export async function startMeasured(): Promise<MeasuredServer> {
  const child = fork(join(import.meta.dirname, 'serve.ts'), { execArgv: ['--expose-gc'] });
  const ready = await message<{ address: string; operatorKey: string; database: MeasuredServer['database'] }>(child);
  return {
    url: ready.address,
    operatorKey: ready.operatorKey,
    database: ready.database,
    process: child,
    async memory(collect) {
      const answer = message<{ rssBytes: number }>(child);
      child.send({ collect });
      return (await answer).rssBytes;
    },
    stop: () => stop(child),
  };
}

/** Answers `body` to every request. */
export async function startBare(body: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const child = fork(join(import.meta.dirname, 'bare-http.ts'));
  const ready = message<{ address: string }>(child);
  child.send(body);
  return { url: (await ready).address, stop: () => stop(child) };
}

function message<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`the server ended with ${code}`));
    child.once('exit', ended);
    child.once('message', (value) => {
      child.off('exit', ended);
      resolve(value as T);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.disconnect();
  await ended;
}

// biome-ignore lint/suspicious/noExplicitAny: the answer of an operation.
export async function ask(url: string, key: string, method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(`${url}/v1${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (response.status !== 200) throw new Error(JSON.stringify(answer));
  return answer;
}

export async function makeUser(server: MeasuredServer): Promise<{
  readonly userKey: string;
  readonly providerKey: string;
  readonly userUuid: string;
}> {
  const { url, operatorKey } = server;
  const provider = await ask(url, operatorKey, 'POST', '/operator/provider', {
    name: 'bench',
    prefixes: ['10.0.0.0/8'],
  });
  const keyOf = async (account_uuid: string) =>
    (await ask(url, operatorKey, 'POST', '/api-key', { account_uuid, name: 'bench' })).key;
  const providerKey = await keyOf(provider.uuid);
  const user = await ask(url, providerKey, 'POST', '/user', {
    username: 'bench',
    email: 'bench@example.net',
    password: 'ochre-meadow-tin-45',
    ips: ['10.0.0.0/9'],
  });
  return { userKey: await keyOf(user.uuid), providerKey, userUuid: user.uuid };
}

export function requestText(method: string, path: string, key: string, body?: string): string {
  const head = `${method} /v1${path} HTTP/1.1\r\nhost: bench\r\nx-api-key: ${key}\r\n`;
  if (body === undefined) return `${head}\r\n`;
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
