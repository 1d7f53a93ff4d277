/** Says in one sentence why a tunnel does not carry what it should. Owns what ip's and the kernel's words mean. */
import type { TakenRoute } from '../drivers/link/port.ts';
import { routeMetric } from './ip-lines.ts';
import type { Step } from './plan-devices.ts';
import type { WantedDevice } from './wanted-device.ts';

/** `message`: ip's own words. Undefined: the tunnel does all that it should without it. */
export function describeFailure(step: Step, message: string, device: WantedDevice): string | undefined {
  const { purpose } = step;
  if (purpose === 'make-room' && isGone(message)) return undefined;
  if (purpose === 'unroute' && /No such process/.test(message)) return undefined;
  if (purpose === 'create' && /Unknown device type|Operation not supported/.test(message)) {
    return `kernel lacks ${device.module}`;
  }
  // For the device, for new ones, or for the whole kernel.
  if (
    purpose === 'address' &&
    step.line.includes(':') &&
    /Permission denied|IPv6 is disabled|not supported/.test(message)
  ) {
    return device.ips.some(({ family }) => family === 6) ? 'IPv6 is switched off on this router' : undefined;
  }
  if ((purpose === 'create' || purpose === 'change') && /File exists|Device or resource busy/.test(message)) {
    return `another device of the router has ${describeEnds(device)} already`;
  }
  if (purpose === 'up' && /Address already in use/.test(message)) {
    return 'the UDP port of Geneve, 6081, is in use by another program of the router';
  }
  if (purpose === 'route' && /File exists/.test(message)) {
    return `${step.subject} is routed elsewhere on the router already, with the metric of the tunnel's route, ${routeMetric}`;
  }
  return `the router's kernel refuses \`ip ${step.line}\`: ${message}`;
}

/** What ip says of what is to be gone and was gone before us. */
export function isGone(message: string): boolean {
  return /Cannot find device|does not exist|Cannot assign requested address|No such device/.test(message);
}

/** A subnet of a tunnel's whose packets take another route, which has the same length and the better metric. */
export function describeDetour(prefix: string, route: TakenRoute): string {
  if (route.discards) return `${prefix} is discarded on the router: a route that says so comes before the tunnel's`;
  return `${prefix} is routed elsewhere on the router: ${describeRoute(route)}, which comes before the tunnel's (metric ${routeMetric})`;
}

/** `via 192.0.2.9 on eth0 (protocol bgp, metric 20)` */
export function describeRoute({ via, device, protocol, metric }: TakenRoute & { readonly discards: false }): string {
  const way = [...(via === undefined ? [] : [`via ${via}`]), ...(device === undefined ? [] : [`on ${device}`])].join(
    ' ',
  );
  return `${way} (protocol ${protocol}, metric ${metric})`;
}

function describeEnds({ kind, local, remote, number }: WantedDevice): string {
  if (kind === 'geneve') return `VNI ${number} with ${remote}`;
  return `GRE from ${local} to ${remote} ${number === undefined ? 'without a key' : `with key ${number}`}`;
}
