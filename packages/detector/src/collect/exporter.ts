/**
 * Owns what is known of one exporter: how its records count, what it has sent. Never decodes.
 */
import type { ExporterSettings, ExporterStatus } from '@levee/contract/detector.ts';
import type { RecordOrigin } from '../aggregate/aggregator.ts';
import type { DecodeCounts } from '../flow-record.ts';
import type { CollectorReason } from './reasons.ts';

/** What is shown as `uuid` of exporters on this machine that no one has configured. */
export const LOCAL_EXPORTER = 'local';

const rateSeconds = 10;
/** An active timeout of a minute, and what exporters take to look. */
const longFlowMilliseconds = 75_000;
/** The longest flow is one of the last so many seconds, or of so many before them. */
const longestFlowSeconds = 3_600;

export class Exporter implements RecordOrigin {
  readonly number: number;
  readonly source: string;
  name: string;
  fixedScale = 0;
  isPrescaled = false;
  interfaces: ReadonlySet<number> | undefined = undefined;
  toldRate = 0;
  otherInterface = 0;
  notProtected = 0;
  absurd = 0;
  tooLong = 0;
  longestFlowMilliseconds = 0;
  #longestFlowBefore = 0;
  #seconds = 0;
  lastSeenMs = 0;
  readonly counts: DecodeCounts = { datagrams: 0, records: 0, dropped: {}, lost: 0 };
  readonly protocols = new Set<string>();
  readonly #rates = new RecentRates();

  constructor(number: number, source: string, name: string) {
    this.number = number;
    this.source = source;
    this.name = name;
  }

  configure({ sampling, interfaces }: Pick<ExporterSettings, 'sampling' | 'interfaces'>): void {
    this.isPrescaled = sampling === 'prescaled';
    this.fixedScale = sampling === 'auto' ? 0 : sampling === 'prescaled' ? 1 : sampling;
    this.interfaces = interfaces === undefined ? undefined : new Set(interfaces);
  }

  /** To be called once a second. */
  second(): void {
    this.#rates.second(this.counts.datagrams, this.counts.records);
    this.#seconds = (this.#seconds + 1) % longestFlowSeconds;
    if (this.#seconds > 0) return;
    this.#longestFlowBefore = this.longestFlowMilliseconds;
    this.longestFlowMilliseconds = 0;
  }

  status(templates: number): ExporterStatus {
    const uncounted: Partial<Record<CollectorReason, number>> = {};
    if (this.otherInterface > 0) uncounted.other_interface = this.otherInterface;
    if (this.notProtected > 0) uncounted.not_protected = this.notProtected;
    if (this.tooLong > 0) uncounted.too_long = this.tooLong;
    if (this.absurd > 0) uncounted.more_than_a_line = this.absurd;
    const status: ExporterStatus = {
      uuid: this.name,
      source: this.source,
      last_seen_ms: this.lastSeenMs,
      protocols: [...this.protocols],
      datagrams: this.counts.datagrams,
      records: this.counts.records,
      datagrams_per_second: this.#rates.datagrams,
      records_per_second: this.#rates.records,
      templates,
      dropped: { ...this.counts.dropped, ...uncounted },
      lost: this.counts.lost,
    };
    const rate = this.fixedScale > 0 ? this.fixedScale : this.toldRate;
    if (rate > 0) status.sampling_rate = rate;
    const longest = Math.max(this.longestFlowMilliseconds, this.#longestFlowBefore);
    if (longest > longFlowMilliseconds) status.longest_flow_s = Math.ceil(longest / 1000);
    return status;
  }
}

/** A source that nobody has configured: its datagrams are counted and nothing else. */
export class UnknownSource {
  readonly source: string;
  lastSeenMs = 0;
  datagrams = 0;
  readonly #rates = new RecentRates();

  constructor(source: string) {
    this.source = source;
  }

  second(): void {
    this.#rates.second(this.datagrams, 0);
  }

  status(): ExporterStatus {
    return {
      source: this.source,
      last_seen_ms: this.lastSeenMs,
      protocols: [],
      datagrams: this.datagrams,
      records: 0,
      datagrams_per_second: this.#rates.datagrams,
      records_per_second: 0,
      templates: 0,
      dropped: { unknown_exporter: this.datagrams } satisfies Partial<Record<CollectorReason, number>>,
      lost: 0,
    };
  }
}

/** Of the last ten seconds, by what there was at the end of each. */
class RecentRates {
  datagrams = 0;
  records = 0;
  readonly #datagrams = new Float64Array(rateSeconds);
  readonly #records = new Float64Array(rateSeconds);
  #at = 0;

  second(datagrams: number, records: number): void {
    this.datagrams = (datagrams - (this.#datagrams[this.#at] as number)) / rateSeconds;
    this.records = (records - (this.#records[this.#at] as number)) / rateSeconds;
    this.#datagrams[this.#at] = datagrams;
    this.#records[this.#at] = records;
    this.#at = (this.#at + 1) % rateSeconds;
  }
}
