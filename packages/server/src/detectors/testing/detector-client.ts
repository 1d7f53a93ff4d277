/** A detector's side of its interface as tests use it: plain HTTP, messages as they arrive. Test code only. */
import { randomUUID } from 'node:crypto';
import { get } from 'node:http';
import type {
  DetectedAttack,
  DetectorReport,
  DetectorSettings,
  DetectorStreamMessage,
} from '@levee/contract/detector.ts';

export interface DetectorStream {
  readonly status: number;
  /** Heartbeats left out. */
  readonly messages: readonly DetectorStreamMessage[];
  readonly closed: boolean;
  /** The last that were told. */
  readonly settings: DetectorSettings | undefined;
  close(): void;
}

export function openDetectorStream(base: string, key: string): Promise<DetectorStream> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const request = get(`${base}/detector/v1/stream`, { headers, agent: false }, (response) => {
      const messages: DetectorStreamMessage[] = [];
      let rest = '';
      let closed = false;
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const message = JSON.parse(line) as DetectorStreamMessage;
          if (message.type !== 'heartbeat') messages.push(message);
        }
      });
      response.on('error', () => {});
      response.on('close', () => {
        closed = true;
      });
      resolve({
        status: response.statusCode ?? 0,
        messages,
        get closed() {
          return closed;
        },
        get settings() {
          return messages.findLast((each): each is DetectorSettings => each.type === 'settings');
        },
        close: () => response.destroy(),
      });
    });
    request.on('error', reject);
  });
}

export interface Reported {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it.
  readonly body: any;
  readonly headers: Headers;
}

export async function sendReport(base: string, key: string, report: unknown): Promise<Reported> {
  const response = await fetch(`${base}/detector/v1/report`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(report),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

export function reportOf(attacks: readonly DetectedAttack[], more: Partial<DetectorReport> = {}): DetectorReport {
  return {
    run: randomUUID(),
    sequence: 0,
    attacks: [...attacks],
    status: {
      listen: ['127.0.0.1:6343'],
      receive_buffers: [],
      kernel_drops: 0,
      tracked_destinations: 1,
      memory_bytes: 1,
    },
    ...more,
  };
}

/** A SYN flood from three sources to one port. */
export function synFlood(dst: string, more: Partial<DetectedAttack> = {}): DetectedAttack {
  const now = Date.now();
  return {
    id: randomUUID(),
    dst,
    phase: 'started',
    vectors: ['tcp-syn'],
    started_ms: now - 300,
    detected_ms: now - 5,
    measured: { at_ms: now - 5, pps: 50_000, bps: 24_000_000 },
    packets: 15_000,
    bytes: 900_000,
    sampled: 150,
    threshold: { policy: 'default', vector: 'tcp-syn', metric: 'pps', value: 10_000, observed: 50_000 },
    profile: [
      {
        vector: 'tcp-syn',
        pps: 50_000,
        bps: 24_000_000,
        peak_pps: 50_000,
        peak_bps: 24_000_000,
        samples: 150,
        protocols: [{ value: 6, share: 1 }],
        source_ports: [],
        destination_ports: [{ value: 443, share: 1 }],
        icmp: [],
        tcp_flags: [{ value: 2, share: 1 }],
        length: { min: 60, p5: 60, max: 60 },
        later_fragments: 0,
        sources: [{ value: '192.0.2.1', share: 0.5 }],
        distinct_sources: 3,
        destinations: [],
      },
    ],
    timeline: [
      {
        at_ms: now - 5,
        seconds: 1,
        pps: 50_000,
        bps: 24_000_000,
        vectors: { 'tcp-syn': { pps: 50_000, bps: 24_000_000 } },
      },
    ],
    packet_samples: [
      { at_ms: now - 10, scale: 100, exporter: 'local', length: 60, header: Buffer.alloc(40, 0x45).toString('base64') },
    ],
    entries: [{ exporter: 'local', share: 1 }],
    ...more,
  };
}
