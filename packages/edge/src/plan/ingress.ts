/**
 * What a router without ingress devices cannot enforce. Owns the sentence that owners and operators of such a rule read;
 * which rules they are is the compiler's knowledge.
 */
import { isFilter } from '@levee/core/filter/entry.ts';
import { needsIngress } from '@levee/core/nftables/compiler.ts';
import type { Obstacle } from './desired.ts';

export function ingressObstacle(ingressDevices: readonly string[]): Obstacle {
  if (ingressDevices.length > 0) return () => undefined;
  return (entry) =>
    !isFilter(entry) && needsIngress(entry)
      ? `packets of packettype ${entry.packetType} are met on ingress devices only, and this router has none: its operator sets LEVEE_EDGE_INGRESS_DEVICES (edge.ingress_devices)`
      : undefined;
}
