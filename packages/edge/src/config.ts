/**
 * What an edge is started with. Owns names, units and defaults of the settings; reads no environment and no
 * configuration file (that is the command's business).
 */
import type { Logger } from 'pino';

export interface EdgeIntervals {
  /** Changes that arrive this close together share one transaction; a lone change never waits. */
  readonly batchMilliseconds: number;
  /** Between two reports of counters and status. */
  readonly reportMilliseconds: number;
  /** Between two looks at what others did to the kernel's tables. */
  readonly driftMilliseconds: number;
  /** A stream that says nothing for this long is dead. */
  readonly silenceMilliseconds: number;
  /** Longest pause before the next attempt to connect. */
  readonly reconnectMilliseconds: number;
  /** A rule that the kernel refused for want of memory or rights is tried again after this. */
  readonly retryMilliseconds: number;
  /** Between two looks at whether tunnels are as they should be. */
  readonly tunnelCheckMilliseconds: number;
  /** Between two probes of one tunnel. */
  readonly probeMilliseconds: number;
}

export const defaultIntervals: EdgeIntervals = {
  batchMilliseconds: 20,
  reportMilliseconds: 10_000,
  driftMilliseconds: 3_000,
  silenceMilliseconds: 15_000,
  reconnectMilliseconds: 10_000,
  retryMilliseconds: 5_000,
  tunnelCheckMilliseconds: 10_000,
  probeMilliseconds: 10_000,
};

export interface EdgeConfig {
  /** `http://host:port` or `unix:/path/control.sock`, tried in turn. */
  readonly controlPlanes: readonly string[];
  /** The router's key, or else the file that holds it (default: `router.key` in the state directory). */
  readonly key?: string;
  readonly keyFile?: string;
  /** Owned by one edge at a time; made with mode 0700 when absent. */
  readonly stateDirectory: string;
  /** `auto`: the kernel when it can be used, else dry; `kernel`: fails to start when it cannot be used. */
  readonly driver: 'auto' | 'kernel' | 'dry';
  /** Devices for rules about broadcast, multicast and foreign packets. */
  readonly ingressDevices?: readonly string[];
  readonly intervals?: Partial<EdgeIntervals>;
  readonly logger: Logger;
}
