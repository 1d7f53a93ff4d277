/**
 * The tunnels that there should be, and what of it their reconciler was told: under a token that rises, so that it can say
 * how far it has got. Owns when it is told; knows neither devices nor cursors.
 */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import type { TunnelReconciler } from '../tunnels/port.ts';

export interface WantedTunnels {
  readonly tunnels: ReadonlyMap<string, AgentTunnel>;
  /** Of the last change. */
  readonly token: number;
  /** Everything up to that token is done; always so where tunnels are not made at all. */
  readonly applied: number;
  /** What the last run left; without it nothing is known, and what is there stays. */
  restore(tunnels: Map<string, AgentTunnel>): void;
  /** Resolves once what is known is in force. */
  start(): Promise<void>;
  /** All of them anew. */
  replace(tunnels: Map<string, AgentTunnel>): void;
  /** uuids that are not tunnels' are passed over. */
  change(upsert: ReadonlyMap<string, AgentTunnel>, remove: Iterable<string>): void;
  /** Tells the reconciler what has changed since the last call, once `written` is over. */
  handOver(written: Promise<unknown>): void;
}

export function createWantedTunnels(reconciler: TunnelReconciler | undefined): WantedTunnels {
  let tunnels = new Map<string, AgentTunnel>();
  /** Before that nobody may say that there are none. */
  let known = false;
  let token = 0;
  let handedOver = 0;
  let starting = Promise.resolve();
  let started = false;
  return {
    get tunnels() {
      return tunnels;
    },
    get token() {
      return token;
    },
    get applied() {
      if (reconciler === undefined) return Number.POSITIVE_INFINITY;
      return started ? reconciler.applied : -1;
    },
    restore(before) {
      tunnels = before;
      known = true;
    },
    start() {
      const begin = async (): Promise<void> => {
        await reconciler?.start(known ? new Map(tunnels) : undefined);
        started = true;
      };
      starting = begin();
      return starting;
    },
    replace(all) {
      tunnels = all;
      known = true;
      token += 1;
    },
    change(upsert, remove) {
      let moved = upsert.size > 0;
      for (const uuid of remove) if (tunnels.delete(uuid)) moved = true;
      for (const [uuid, tunnel] of upsert) tunnels.set(uuid, tunnel);
      if (moved && known) token += 1;
    },
    handOver(written) {
      if (handedOver === token) return;
      handedOver = token;
      const [wanted, at] = [new Map(tunnels), token];
      void Promise.all([starting, written]).then(() => reconciler?.want(wanted, at));
    },
  };
}
