/**
 * Owns which vectors are decided about: those whose packets were looked at. A flood that begins at once is told before any
 * was; what would be made then fits all of its kind, and hits customers whom the attack has nothing to do with. Pure.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { vectorOfPurpose } from './measure.ts';

/** Fewer may be anybody's: a detector tells of a vector again when it has as many. */
export const LEAST_SAMPLES = 4;
/** So long after a vector was told of it is decided about, looked at or not. A detector has its samples in half of it. */
export const UNSEEN_MILLISECONDS = 1_000;

/** What is done about the others is the same whatever their packets look like. */
const byLook: readonly string[] = ['udp-amplification', 'icmp', 'ip-fragment', 'udp-other', 'ip-other'];

export interface Sight {
  readonly seen: readonly VectorProfile[];
  /** Nothing stands against them, and nothing is made yet. */
  readonly awaited: readonly VectorProfile[];
}

/**
 * `purposes`: of what stands. What has measures keeps them while it is not seen: they were made when it was. `isOver`: there
 * was time enough to see something. `isSubnet`: which addresses are attacked has to be seen as well.
 */
export function sightOf(
  profiles: readonly VectorProfile[],
  purposes: readonly string[],
  { isOver, isSubnet }: { readonly isOver: boolean; readonly isSubnet: boolean },
): Sight {
  const known = new Set(purposes.map(vectorOfPurpose));
  const isSeen = ({ vector, samples }: VectorProfile) =>
    samples >= LEAST_SAMPLES || (!isSubnet && !byLook.includes(vector));
  const awaited = profiles.filter((profile) => !isSeen(profile) && !known.has(profile.vector));
  return isOver
    ? { seen: profiles.filter((profile) => isSeen(profile) || awaited.includes(profile)), awaited: [] }
    : { seen: profiles.filter(isSeen), awaited };
}
