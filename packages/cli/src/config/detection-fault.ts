/** Owns which settings of detection do not go together, for whoever starts it: `levee detect` or `levee up`. Pure. */
import { type ConfigOf, settings } from './settings.ts';

/** A sentence for the operator; undefined: they go together. */
export function detectionFault({
  detectRole: role,
  detectNats,
  flowListen,
}: Pick<ConfigOf<'detect'>, 'detectRole' | 'detectNats' | 'flowListen'>): string | undefined {
  const { environment, toml } = settings.detectNats;
  const roleName = settings.detectRole.environment;
  if (role === 'all' && detectNats !== undefined)
    return `${environment} (${toml}) is set and ${roleName} (${settings.detectRole.toml}) is all, which uses no NATS: set the role to collect or detect, or leave NATS out`;
  if (role !== 'all' && detectNats === undefined)
    return `${roleName}=${role} needs a NATS: set ${environment} or ${toml}, or give --detect-nats`;
  if (role === 'collect' && flowListen.length === 0)
    return `${roleName}=collect with ${settings.flowListen.environment}=off: there is nothing to collect`;
  return undefined;
}

/** Whether `levee up` has a detector or collector to run. */
export function isDetectionHere({
  detectRole,
  flowListen,
}: Pick<ConfigOf<'detect'>, 'detectRole' | 'flowListen'>): boolean {
  return detectRole === 'detect' || flowListen.length > 0;
}
