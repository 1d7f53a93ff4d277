/**
 * What a detector is started with. Owns names, units and defaults of the settings; reads no environment and no
 * configuration file (that is the command's business).
 */
import type { Logger } from 'pino';
import type { NatsSettings } from './bus/nats-connection.ts';
import type { LinkIntervals } from './link/link.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface DetectorConfig {
  /** `http://host:port` or `unix:/path/control.sock`, tried in turn. */
  readonly controlPlanes: readonly string[];
  /** The detector's key, or else the one in the state directory (`detector.key`). */
  readonly key?: string | undefined;
  /** Made with mode 0700 when absent. */
  readonly stateDirectory: string;
  /** Where flow telemetry arrives, over UDP; empty: nowhere. */
  readonly listen: readonly ListenAddress[];
  /** Threads that receive and decode; absent: as many as the collector finds right. */
  readonly workers?: number | undefined;
  /** `all`: receives and detects, without NATS. `collect`: receives alone. `detect`: detects its share of what collectors tell. */
  readonly role?: 'all' | 'collect' | 'detect' | undefined;
  /** Needed by those two. */
  readonly nats?: NatsSettings | undefined;
  readonly intervals?: Partial<LinkIntervals & { readonly reportMilliseconds: number }>;
  readonly logger: Logger;
}

export interface NatsStanding {
  readonly connected: boolean;
  /** Why it is not; absent: it is, or nobody has answered yet. */
  readonly problem: string | undefined;
}

export interface DetectorHandle {
  /** With the control plane; of a collector alone, with NATS. */
  readonly connected: boolean;
  /** Where flow telemetry is taken: `127.0.0.1:6343`, with the port that was really taken. */
  readonly listening: readonly string[];
  /** Absent: it speaks with no NATS. */
  readonly nats?: NatsStanding;
  /** Where it is not, each with the reason. */
  readonly refused: readonly string[];
  /** Words about attacks that the control plane has not answered yet. */
  readonly waiting: number;
  stop(): Promise<void>;
}

export const keyFileName = 'detector.key';
/** Between two reports of what exporters do. */
export const REPORT_MILLISECONDS = 10_000;
