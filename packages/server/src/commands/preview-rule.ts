/**
 * Says what a draft rule would have matched among the packets that were sampled lately to its destination, and what it would
 * change beside all that routers enforce there. Stores nothing. Must run outside a transaction: it waits for detectors.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PacketSample } from '@levee/contract/detector.ts';
import type { Entry } from '@levee/core/filter/entry.ts';
import { type CoveringEntries, coveringEntries, type Preview, startPreview } from '@levee/core/firewall/preview.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { readSample, type SampledPacket, summarise } from '@levee/core/firewall/sampled-packet.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { type CoveringRow, parseCovering } from './explain-packet.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { findPlace, notAllowed } from './own-space.ts';
import { type FoundSamples, requestSamples } from './request-samples.ts';

/** How far back is looked; detectors keep no more. */
export const PREVIEW_SECONDS = 900;
/** Rules and filters that are read and looked at for one preview: some tenths of a second of work, in pieces. */
const MOST_ENTRIES = 20_000;
const MOST_LOOKS = 2_000_000;
const LOOKS_A_TURN = 20_000;

export type NoSamples = 'no_detector' | 'no_answer' | 'no_samples';

export interface RulePreview {
  readonly preview: Preview;
  /** How many samples the detectors hold. */
  readonly held: number;
  /** The first and the last moment of those looked at, in milliseconds since 1970. */
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
  /** Why nothing was looked at. */
  readonly reason: NoSamples | undefined;
}

/** `dst`: the draft's, canonical. */
export async function previewRule(
  executor: Executor,
  caller: Caller,
  draft: Rule,
  dst: string,
): Promise<Outcome<RulePreview>> {
  const place = await findPlace(executor, caller, dst);
  if (place === undefined) return refuse('ip_not_allowed', notAllowed('/dst', dst, caller));
  const found = await requestSamples(executor, { dst, seconds: PREVIEW_SECONDS, sinceMs: place.since_ms });
  if (!found.ok && found.reason === 'busy') return tooMany;
  const samples = found.ok ? found.packets.map(sampledPacket) : [];
  const { chosen, entriesFor } = await withEntries(executor, draft, samples);
  const run = startPreview(draft);
  let looks = 0;
  for (const sample of chosen) {
    looks += run.add(sample, entriesFor);
    if (looks < LOOKS_A_TURN) continue;
    looks = 0;
    await nextTurn();
  }
  return done({
    preview: run.result(),
    held: found.ok ? found.held : 0,
    sinceMs: chosen[0]?.atMs,
    untilMs: chosen.at(-1)?.atMs,
    reason: reasonOf(found),
  });
}

const tooMany = refuse('rate_limited', {
  field: '',
  code: 'rate_limited',
  message: 'Too many previews are being made at this moment; try again in a second.',
});

function reasonOf(found: FoundSamples): NoSamples | undefined {
  if (found.ok) return found.packets.length === 0 ? 'no_samples' : undefined;
  return found.reason === 'no_detector' ? 'no_detector' : 'no_answer';
}

function sampledPacket({ at_ms, scale, length, header }: PacketSample): SampledPacket {
  return { atMs: at_ms, scale, length, header: Buffer.from(header, 'base64') };
}

/** Whoever owns them: the kernel evaluates them all. `places`: which of the destinations each covers. */
const coveringStatement = {
  name: 'preview_entries',
  text: `select 'rule' as what, r.uuid::text as uuid, r.sequence, r.owner_uuid::text as owner_uuid,
      r.provider_uuid::text as provider_uuid, r.fields, c.places
    from (
      select r.uuid, array_agg(d.place) as places
      from unnest($1::cidr[]) with ordinality d (dst, place)
      join firewall_rule r on r.dst >>= d.dst and r.deletion_marked_at is null group by r.uuid limit ${MOST_ENTRIES + 1}
    ) c join firewall_rule r on r.uuid = c.uuid
    union all
    select 'filter', f.uuid::text, f.sequence, f.owner_uuid::text, f.provider_uuid::text, f.fields, c.places
    from (
      select f.uuid, array_agg(d.place) as places
      from unnest($1::cidr[]) with ordinality d (dst, place)
      join filter f on f.dst >>= d.dst and f.deletion_marked_at is null group by f.uuid limit ${MOST_ENTRIES + 1}
    ) c join filter f on f.uuid = c.uuid`,
};

interface PreviewRow extends CoveringRow {
  readonly places: readonly number[];
}

interface Chosen {
  readonly chosen: readonly SampledPacket[];
  readonly entriesFor: (destination: string) => CoveringEntries;
}

/** Where all of them would be too much work, every second sample, or fourth …: the answer says how many were looked at. */
async function withEntries(executor: Executor, draft: Rule, samples: readonly SampledPacket[]): Promise<Chosen> {
  for (let chosen = samples; ; chosen = chosen.filter((_, index) => index % 2 === 0)) {
    const destinations = chosen.map((sample) => {
      const decoded = readSample(sample);
      return decoded === undefined ? '' : (summarise(decoded).dst ?? '');
    });
    const distinct = [...new Set(destinations.filter((destination) => destination !== ''))];
    const rows =
      distinct.length === 0
        ? []
        : await executor.rows<PreviewRow & Record<string, unknown>>(coveringStatement, [distinct]);
    const counts = new Map<string, number>();
    for (const { places } of rows) {
      for (const place of places)
        counts.set(distinct[place - 1] ?? '', (counts.get(distinct[place - 1] ?? '') ?? 0) + 1);
    }
    const looks = destinations.reduce((sum, destination) => sum + 2 * (counts.get(destination) ?? 0) + 2, 0);
    if (chosen.length > 1 && (rows.length > MOST_ENTRIES || looks > MOST_LOOKS)) continue;
    const entries = new Map<string, Entry[]>(distinct.map((destination) => [destination, []]));
    for (const row of rows) {
      const entry = parseCovering(row);
      if (entry === undefined) continue;
      for (const place of row.places) entries.get(distinct[place - 1] ?? '')?.push(entry);
    }
    const covering = new Map<string, CoveringEntries>();
    return {
      chosen,
      entriesFor(destination) {
        const known = covering.get(destination) ?? coveringEntries(entries.get(destination) ?? [], draft);
        covering.set(destination, known);
        return known;
      },
    };
  }
}
