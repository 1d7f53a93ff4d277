/** Says in one sentence why a tunnel's device could not be made as wanted. Owns what ip's and the kernel's words mean. */
import type { Step } from './plan-devices.ts';
import type { DeviceKind, WantedDevice } from './wanted-device.ts';

/** What the module that makes a kind of device is called. */
export const moduleOf: Readonly<Record<DeviceKind, string>> = {
  gre: 'ip_gre',
  ip6gre: 'ip6_gre',
  geneve: 'geneve',
};

/** `message`: ip's own words. */
export function describeFailure(step: Step, message: string, device: WantedDevice): string {
  const { purpose } = step;
  if (purpose === 'create' && /Unknown device type|Operation not supported/.test(message)) {
    return `kernel lacks ${moduleOf[device.kind]}`;
  }
  if ((purpose === 'create' || purpose === 'change') && /File exists|Device or resource busy/.test(message)) {
    return `another device of the router has ${describeEnds(device)} already`;
  }
  if (purpose === 'up' && /Address already in use/.test(message)) {
    return 'the UDP port of Geneve, 6081, is in use by another program of the router';
  }
  if (purpose === 'route' && /File exists/.test(message)) {
    return `${step.subject} is routed elsewhere on the router already`;
  }
  return `the router's kernel refuses \`ip ${step.line}\`: ${message}`;
}

function describeEnds({ kind, local, remote, number }: WantedDevice): string {
  if (kind === 'geneve') return `VNI ${number} with ${remote}`;
  return `GRE from ${local} to ${remote} ${number === undefined ? 'without a key' : `with key ${number}`}`;
}
