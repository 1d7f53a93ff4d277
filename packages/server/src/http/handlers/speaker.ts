/** From requests about the BGP speaker to its row, and from that to an answer. Decides nothing itself. */
import type pg from 'pg';
import { executorOf } from '../../commands/executor.ts';
import { readSpeaker, type SpeakerRow } from '../../commands/read-speaker.ts';
import type { Handler } from '../call.ts';
import { timeText } from '../object-answer.ts';

export interface SpeakerServices {
  readonly pool: pg.Pool;
  /** A BGP speaker is configured. */
  readonly hasSpeaker: boolean;
}

export function speakerHandlers({ pool, hasSpeaker }: SpeakerServices): Record<string, Handler> {
  return {
    readSpeaker: {
      async read() {
        const row = hasSpeaker ? await readSpeaker(executorOf(pool)) : undefined;
        return { ok: true, answer: { body: JSON.stringify(speakerJson(row)) } };
      },
    },
  };
}

function speakerJson(row: SpeakerRow | undefined): object {
  if (row === undefined) return { name: null, connected: false };
  return {
    name: row.name,
    address: row.address,
    ...(row.version !== null && { version: row.version }),
    connected: row.trouble === null,
    ...(row.trouble !== null && { trouble: row.trouble }),
    since: timeText(row.since_ms),
    checked_at: timeText(row.checked_ms),
    ...(row.peers !== null && { peers: row.peers }),
    routes: { flowspec: row.flow_routes, blackhole: row.blackhole_routes, foreign: row.foreign_routes },
  };
}
