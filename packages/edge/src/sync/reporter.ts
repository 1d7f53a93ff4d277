/**
 * Tells the control plane what is in force and what was counted. Owns order and repetition: one report at a time, an
 * acknowledgement at once, counters under a number that stays the same until the control plane has taken it. Decides
 * nothing about objects.
 */
import type {
  AgentCounters,
  AgentEnforcement,
  AgentFailure,
  AgentHit,
  AgentProbe,
  AgentReport,
} from '@levee/contract/agent.ts';
import { createBackoff } from '@levee/follow/backoff.ts';
import { createCaller, type Endpoint } from '@levee/follow/endpoint.ts';
import type { KeyAlarm } from '@levee/follow/key-alarm.ts';
import { watchOutage } from '@levee/follow/outage.ts';
import type { Logger } from 'pino';
import { fitFailures, takeHits } from './report-size.ts';

export interface ReporterOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  /** uuid of this process. */
  readonly run: string;
  readonly reconnectMilliseconds: number;
  readonly answerMilliseconds: number;
  readonly logger: Logger;
  readonly keyAlarm: KeyAlarm;
  applied(): string | undefined;
  /** Asked where nothing is applied: up to here what was acknowledged before stands. */
  resumes(): string | undefined;
  waitsForTunnels(): boolean;
  enforcement(): AgentEnforcement;
  /** What the cursor covers besides rules; empty: nothing. */
  capabilities(): readonly string[];
  failures(): AgentFailure[];
}

export interface Reporter {
  /** Something that the control plane should know at once has changed. */
  acknowledge(): void;
  /**
   * The periodic report. Hits of a report that was not answered yet are kept apart from these; of a tunnel's probes the
   * last ones count.
   */
  account(hits: AgentHit[], probes: readonly AgentProbe[], status: Record<string, unknown>): void;
  /** Prefer this address: the stream came up there. */
  prefer(endpoint: Endpoint): void;
  /** Resolves when everything has been answered. */
  idle(): Promise<void>;
  /** Gives what waits one more chance of this many milliseconds. */
  stop(graceMilliseconds: number): Promise<void>;
}

export function createReporter(options: ReporterOptions): Reporter {
  const { endpoints, logger } = options;
  const caller = createCaller(options.answerMilliseconds);
  const backoff = createBackoff(options.reconnectMilliseconds);
  let at = 0;
  let number = 0;
  let due = false;
  let sending = false;
  let stopped = false;
  let retry: NodeJS.Timeout | undefined;
  let outstanding: AgentCounters | undefined;
  const gathered = new Map<string, AgentHit>();
  const probed = new Map<string, AgentProbe>();
  let status: Record<string, unknown> | undefined;
  const outage = watchOutage(logger, 'a report was not taken; it is repeated');
  let waiting: (() => void)[] = [];

  const settle = (): void => {
    if (!stopped && (due || sending || retry)) return;
    const waiters = waiting;
    waiting = [];
    for (const resolve of waiters) resolve();
  };

  const compose = (): AgentReport => {
    if (outstanding === undefined && gathered.size > 0) {
      number += 1;
      outstanding = { run: options.run, number, hits: takeHits(gathered) };
    }
    const cursor = options.applied();
    const resumes = cursor === undefined ? options.resumes() : undefined;
    const capabilities = options.capabilities();
    return {
      ...(cursor === undefined ? {} : { cursor }),
      ...(resumes === undefined ? {} : { resumes }),
      ...(options.waitsForTunnels() ? { waits_for: 'tunnels' as const } : {}),
      enforcement: options.enforcement(),
      ...(capabilities.length > 0 ? { capabilities: [...capabilities] } : {}),
      failures: fitFailures(options.failures()),
      ...(outstanding ? { counters: outstanding } : {}),
      ...(probed.size > 0 ? { probes: [...probed.values()] } : {}),
      ...(status ? { status } : {}),
    };
  };

  const send = async (): Promise<void> => {
    sending = true;
    due = false;
    const report = compose();
    const endpoint = endpoints[at % endpoints.length] as Endpoint;
    let problem: string | undefined;
    try {
      const { status: code } = await caller.post(
        endpoint,
        '/agent/v1/report',
        { authorization: `Bearer ${options.key}` },
        report,
      );
      if (code !== 200) problem = `answered ${code}`;
      options.keyAlarm(endpoint.text, code);
    } catch (error) {
      problem = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    }
    sending = false;
    if (problem === undefined) {
      if (report.counters === outstanding) outstanding = undefined;
      for (const probe of report.probes ?? []) if (probed.get(probe.uuid) === probe) probed.delete(probe.uuid);
      if (report.status === status) status = undefined;
      backoff.reset();
      outage.over();
      if (due || gathered.size > 0) kick();
    } else if (!stopped) {
      outage.failed({ endpoint: endpoint.text, reason: problem });
      at += 1;
      due = true;
      retry = setTimeout(() => {
        retry = undefined;
        void send();
      }, backoff.next());
    }
    settle();
  };

  const kick = (): void => {
    due = true;
    if (!sending && !retry && !stopped) void send();
  };

  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      settle();
    });

  return {
    acknowledge: kick,
    account(hits, probes, newStatus) {
      for (const hit of hits) gathered.set(hit.uuid, joined(gathered.get(hit.uuid), hit));
      for (const probe of probes) probed.set(probe.uuid, probe);
      status = newStatus;
      kick();
    },
    prefer(endpoint) {
      const index = endpoints.indexOf(endpoint);
      if (index >= 0) at = index;
      if (!retry) return;
      clearTimeout(retry);
      retry = undefined;
      void send();
    },
    idle,
    async stop(graceMilliseconds) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        idle(),
        new Promise<void>((resolve) => {
          timer = setTimeout(resolve, graceMilliseconds);
        }),
      ]);
      clearTimeout(timer);
      stopped = true;
      clearTimeout(retry);
      retry = undefined;
      caller.close();
      settle();
    },
  };
}

function joined(before: AgentHit | undefined, hit: AgentHit): AgentHit {
  if (before === undefined) return hit;
  const sharedBy = Math.max(before.shared_by ?? 1, hit.shared_by ?? 1);
  return {
    uuid: hit.uuid,
    packets: before.packets + hit.packets,
    bytes: before.bytes + hit.bytes,
    last_hit_at: hit.last_hit_at,
    ...(sharedBy > 1 ? { shared_by: sharedBy } : {}),
  };
}
