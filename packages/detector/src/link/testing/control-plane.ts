/**
 * A control plane as a detector's link meets it: a stream that says what the test wants, and reports that are answered as the
 * test says. Test code only.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  DetectorReport,
  DetectorSettings,
  DetectorStreamMessage,
  SamplesAnswer,
} from '@levee/contract/detector.ts';

export interface FakeControlPlane {
  readonly address: string;
  readonly reports: readonly DetectorReport[];
  readonly samples: readonly SamplesAnswer[];
  /** Status of the next answers to reports; undefined: the connection is cut. */
  answer: (report: DetectorReport) => number | undefined;
  tell(message: DetectorStreamMessage): void;
  /** Ends the open streams. */
  cut(): void;
  close(): Promise<void>;
}

export function settingsOf(revision: number, prefixes: string[]): DetectorSettings {
  return { type: 'settings', revision, prefixes, policies: [], exporters: [], ongoing: [] };
}

/** `port`: where another one was; absent: any. */
export async function startControlPlane(key: string, port = 0): Promise<FakeControlPlane> {
  const reports: DetectorReport[] = [];
  const samples: SamplesAnswer[] = [];
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${key}`) return response.writeHead(401).end('{}');
    if (request.url === '/detector/v1/stream') {
      streams.add(response);
      response.on('close', () => streams.delete(response));
      response.writeHead(200);
      response.write(`${JSON.stringify({ type: 'hello', detector: { uuid: 'u', name: 'd' }, heartbeat_s: 5 })}\n`);
      return;
    }
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      if (request.url === '/detector/v1/samples') {
        samples.push(JSON.parse(text));
        return response.end('{}');
      }
      const report = JSON.parse(text) as DetectorReport;
      const status = control.answer(report);
      if (status === undefined) return request.socket.destroy();
      if (status === 200) reports.push(report);
      response.writeHead(status).end(JSON.stringify(status === 200 ? { refused: [] } : { error: 'x', message: 'no' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const control: FakeControlPlane = {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reports,
    samples,
    answer: () => 200,
    tell(message) {
      for (const stream of streams) stream.write(`${JSON.stringify(message)}\n`);
    },
    cut() {
      for (const stream of streams) stream.destroy();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return control;
}
