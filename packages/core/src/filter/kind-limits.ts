/** Owns all that is said of what a kind cannot do: its own sentences, and those that are the same for every kind of its make. */
import { type FilterKind, type KindEnforcement, mostRemembered, settlingSeconds } from './filter-kind.ts';
import { sharedTimes } from './meter-bounds.ts';
import { sourceBits } from './one-source.ts';
import { learningMeter, mostLearned, settlingMeter } from './settling-meter.ts';

const networks = `An IPv6 source is a /${sourceBits[6]}: its addresses share what one source may.`;
const neighbours = 'What one address of it has opened is open to all of them.';
const crowds =
  `Of more than ${mostRemembered.toLocaleString('en')} sources at a time, those that came too late for a place share ` +
  `${sharedTimes} times the limit of one.`;

const attackersStay =
  `For ${settlingSeconds} seconds after it is switched on, whoever sends what fits a running session is taken for one, and stays so ` +
  "while he sends: switch the filter on before an attack, or stop that attack's sources by rules.";
const learnsSources = `Over UDP, at most ${told(mostLearned)} sources become known so at one address.`;
const learnsAnswered = `${told(settlingMeter.packetsPerSecond)} such packets a second pass; a connection counts once the server has answered.`;
const laterFragments =
  'Later fragments of large packets pass unseen. A rule for ipv6-frag stops those of IPv6; a filter of kind udp-amplification ' +
  'for the same address has the router put together those of both families, and discards what stays incomplete.';
const tracked =
  'Connections are known to each router by itself, in one table for all of its destinations: floods to many addresses at once can ' +
  'fill it, and new connections are lost then; one whose way moves to another router may break.';
const remembered =
  'Each router remembers by itself: a session whose way moves to another one has to begin anew. A filter for a subnet shares one ' +
  'memory among its addresses, which floods to several of them can fill: a server that is attacked often should have its own.';
const unbounded = 'What belongs to a known TCP connection is bounded by ratelimit alone.';
const forgedClient = "Whoever forges a client's address can use up the limits on that source for it.";

function newcomersShare(perSecond: number): string {
  return (
    `New sources share their limit (${told(perSecond)} a second over UDP to one address) with forged openings: in a flood of ten ` +
    "times as many, one in ten of a newcomer's gets through. Who is known goes on."
  );
}

function synsShare(perSecond: number): string {
  return (
    `SYNs pass up to ${told(perSecond)} a second to one address, forged ones among them: of ten times as many, one in ten does. ` +
    'Against such floods add tcp-syn-protect, which is asked first.'
  );
}

function told(count: number): string {
  return count.toLocaleString('en');
}

/** Of floods that are like what is wanted, and of what a router knows. */
function* ofMemory({ transports }: FilterKind, enforcement: KindEnforcement): Iterable<string> {
  const { meters, remembers, settles, tracking, tracks = transports } = enforcement;
  const sumOf = (name: string) => meters.find((meter) => meter.name === name && meter.of === 'destination');
  const [newcomers, syns] = [sumOf('openings'), sumOf('sum')];
  if (newcomers) yield newcomersShare(newcomers.packetsPerSecond);
  if (syns) yield synsShare(syns.packetsPerSecond);
  if (settles) {
    const learned = meters.includes(learningMeter) ? ` ${learnsSources}` : '';
    const answered = meters.includes(settlingMeter) ? ` ${learnsAnswered}` : '';
    yield `${attackersStay}${learned}${answered}`;
  }
  if (remembers) yield remembered;
  if (tracking !== 'nothing') yield tracked;
  if (tracking !== 'nothing' && transports.includes('tcp')) yield unbounded;
  if (transports.includes('udp') && (tracking === 'nothing' || !tracks.includes('udp'))) yield laterFragments;
}

export function limitsOf(kind: FilterKind): readonly string[] {
  const { enforcement, families, limits } = kind;
  const metersSources = enforcement.meters.some(({ of }) => of === 'source');
  const remembersSources = enforcement.remembers !== undefined && 'sources' in enforcement.remembers;
  const more: string[] = [...ofMemory(kind, enforcement)];
  if (families.includes(6) && metersSources) more.push(remembersSources ? `${networks} ${neighbours}` : networks);
  if (metersSources) more.push(forgedClient, crowds);
  return [...limits, ...more];
}
