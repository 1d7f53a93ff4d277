/**
 * Tunnels in memory, for tests: what carries traffic outlives the reconcilers opened on it, as devices outlive their agents.
 * Works beside its caller, and only as far as it is let.
 */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import type { TunnelReconciler, TunnelReconcilerEvents } from './port.ts';

export interface FakeTunnels {
  /** What carries traffic. */
  readonly devices: ReadonlyMap<string, AgentTunnel>;
  /** Tunnels for which this is not undefined fail with that reason. */
  refuse: (tunnel: AgentTunnel) => string | undefined;
  /** While true, nothing gets done. */
  held: boolean;
  /** Something is asked for that is not done yet. */
  readonly busy: boolean;
  /** `alive`: of the process; once it is false the reconciler does nothing any more. */
  open(events: TunnelReconcilerEvents, alive?: () => boolean): TunnelReconciler;
}

export function createFakeTunnels(): FakeTunnels {
  const devices = new Map<string, AgentTunnel>();
  let works = 0;
  let held = false;
  let waiting: (() => void)[] = [];
  const world: FakeTunnels = {
    devices,
    refuse: () => undefined,
    get held() {
      return held;
    },
    set held(now) {
      held = now;
      if (held) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    get busy() {
      return works > 0;
    },
    open(events, alive = () => true) {
      let applied = 0;
      let stopped = false;
      let failing = new Map<string, string>();
      let wanted: { tunnels: ReadonlyMap<string, AgentTunnel>; token: number } | undefined;
      let working: Promise<void> | undefined;
      const runs = (): boolean => alive() && !stopped;
      const work = async (): Promise<void> => {
        await new Promise((resolve) => setImmediate(resolve));
        while (held) await new Promise<void>((resolve) => waiting.push(resolve));
        if (!runs() || wanted === undefined) return;
        const { tunnels, token } = wanted;
        wanted = undefined;
        failing = new Map();
        for (const uuid of devices.keys()) if (!tunnels.has(uuid)) devices.delete(uuid);
        for (const [uuid, tunnel] of tunnels) {
          const reason = world.refuse(tunnel);
          if (reason === undefined) devices.set(uuid, tunnel);
          else {
            devices.delete(uuid);
            failing.set(uuid, reason);
          }
        }
        applied = token;
        events.changed();
        if (wanted) await work();
      };
      const begin = (): Promise<void> => {
        if (working) return working;
        works += 1;
        working = work().finally(() => {
          works -= 1;
          working = undefined;
        });
        return working;
      };
      return {
        async start(tunnels) {
          if (tunnels === undefined) return;
          wanted = { tunnels, token: 0 };
          await begin();
        },
        want(tunnels, token) {
          wanted = { tunnels, token };
          void begin();
        },
        get applied() {
          return applied;
        },
        failures: () => [...failing].map(([uuid, reason]) => ({ uuid, reason })),
        capabilities: ['tunnel:GRE', 'tunnel:Geneve'],
        probes: () => [],
        status: () => ({ devices: devices.size }),
        async stop() {
          stopped = true;
          await working;
        },
      };
    },
  };
  return world;
}
