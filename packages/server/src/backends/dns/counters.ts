/**
 * What the server has done since it started. Owns the names; everything is a plain number that only rises, so that a
 * metrics page can read it at any time. Never holds a name, a zone or an address.
 */
import type { AnswerKind } from './answer.ts';

export interface DnsCounters {
  readonly queries: { udp: number; tcp: number };
  readonly answers: Record<AnswerKind, number>;
  /** Answers that said "come over TCP", those of the rate limit included. */
  truncated: number;
  /** Messages that got no answer: no header, themselves an answer, or from port 0. */
  unanswerable: number;
  /** Over the rate limit: told to come over TCP, and not answered at all. */
  readonly limited: { truncated: number; dropped: number };
  /** Datagrams that the system did not take. */
  unsent: number;
  readonly connections: { accepted: number; idle: number; evicted: number };
  readonly transfers: { complete: number; broken: number };
  readonly notifications: { sent: number; acknowledged: number; unanswered: number };
}

export function createCounters(): DnsCounters {
  return {
    queries: { udp: 0, tcp: 0 },
    answers: {
      answer: 0,
      referral: 0,
      no_data: 0,
      name_error: 0,
      refused: 0,
      format_error: 0,
      not_implemented: 0,
      bad_version: 0,
      not_authoritative: 0,
      failed: 0,
    },
    truncated: 0,
    unanswerable: 0,
    limited: { truncated: 0, dropped: 0 },
    unsent: 0,
    connections: { accepted: 0, idle: 0, evicted: 0 },
    transfers: { complete: 0, broken: 0 },
    notifications: { sent: 0, acknowledged: 0, unanswered: 0 },
  };
}
