/** What is known of the BGP speaker. Owns the statement; renders nothing. */
import type { Executor } from './executor.ts';
import { milliseconds } from './stored-row.ts';

export interface SpeakerRow {
  readonly name: string;
  readonly address: string;
  readonly version: string | null;
  readonly trouble: string | null;
  /** Milliseconds since 1970, as `checked_ms`. */
  readonly since_ms: number;
  readonly peers: readonly { address: string; asn?: number; established: boolean }[] | null;
  readonly flow_routes: number;
  readonly blackhole_routes: number;
  readonly foreign_routes: number;
  readonly checked_ms: number;
}

const statement = {
  name: 'speaker_read',
  text: `select name, address, version, trouble, ${milliseconds('since')} as since_ms, peers, flow_routes, blackhole_routes,
    foreign_routes, ${milliseconds('checked_at')} as checked_ms from bgp_speaker`,
};

/** Undefined: none was ever looked at. */
export async function readSpeaker(executor: Executor): Promise<SpeakerRow | undefined> {
  const [row] = await executor.rows<SpeakerRow>(statement, []);
  return row;
}
