/** Renders what routers counted for an object, as a member for the end of its answer. */
import type { HitRow } from '../commands/hit-row.ts';
import { timeText } from './object-answer.ts';

/** `more`: further members as text, each with a comma before it. */
export function hitsText(row: HitRow, more = ''): string {
  const last = row.last_hit_ms === null ? '' : `,"last_hit_at":"${timeText(row.last_hit_ms)}"`;
  return `,"hits":{"packets":${row.packets ?? 0},"bytes":${row.bytes ?? 0}${last}${more}}`;
}
