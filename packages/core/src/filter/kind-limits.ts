/** Owns all that is said of what a kind cannot do: its own sentences, and those that are the same for every kind of its make. */
import { type FilterKind, mostRemembered } from './filter-kind.ts';
import { sharedTimes } from './meter-bounds.ts';
import { sourceBits } from './one-source.ts';

const networks = `An IPv6 source is a /${sourceBits[6]}: its addresses share what one source may.`;
const neighbours = 'What one address of it has opened is open to all of them.';
const crowds =
  `Of more than ${mostRemembered.toLocaleString('en')} sources at a time, those that came too late for a place share ` +
  `${sharedTimes} times the limit of one.`;

export function limitsOf({ enforcement, families, limits }: FilterKind): readonly string[] {
  if (enforcement === undefined) return limits;
  const metersSources = enforcement.meters.some(({ of }) => of === 'source');
  const remembersSources = enforcement.remembers !== undefined && 'sources' in enforcement.remembers;
  const more: string[] = [];
  if (families.includes(6) && metersSources) more.push(remembersSources ? `${networks} ${neighbours}` : networks);
  if (metersSources) more.push(crowds);
  return [...limits, ...more];
}
