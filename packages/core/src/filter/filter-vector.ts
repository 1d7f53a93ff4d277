/**
 * Packets that a kind is held to, as data: by the evaluator and by a real kernel. Types and what makes them short to
 * write. Published with the kind: whoever doubts a signature can look.
 */
import type { Family } from '../net/prefix.ts';

export interface FilterVector {
  /** What happens, and where the octets are from (a capture, a program and its version, a section of a document). */
  readonly says: string;
  /** Absent: each of the kind's families. */
  readonly family?: Family;
  /** True: the filter settles meanwhile. Absent: it has done so before. */
  readonly settling?: boolean;
  /** In order; each flow is between one client and the destination. */
  readonly steps: readonly VectorStep[];
}

export interface VectorStep {
  readonly from: 'client' | 'server';
  readonly transport: 'udp' | 'tcp' | 'icmp';
  /** Clients are told apart by number: another address. Absent: 1. */
  readonly client?: number;
  /** Absent: 40000. */
  readonly clientPort?: number;
  /** Absent: the kind's first default port of the destination in that transport, or 4000. */
  readonly serverPort?: number;
  /** Of TCP (RFC 9293, 3.1). Absent: ACK. */
  readonly flags?: number;
  readonly icmp?: { readonly type: number; readonly code: number };
  /**
   * Hexadecimal; blanks are allowed. `{server}` and `{client}` stand for the octets of their addresses. Absent: empty.
   * Of ICMP: what follows the first 8 octets.
   */
  readonly payload?: string;
  /** Of a packet from the client; those of the server always go through. */
  readonly expect?: 'pass' | 'discard' | 'challenge';
}

/** One UDP packet of a client. */
export function datagram(payload: string, expect: 'pass' | 'discard'): VectorStep {
  return { from: 'client', transport: 'udp', payload, expect };
}

/** One TCP segment of a client, with these flags. */
export function segment(flags: number, expect: 'pass' | 'discard' | 'challenge', payload = ''): VectorStep {
  return { from: 'client', transport: 'tcp', flags, payload, expect };
}

/** One TCP segment of the server. */
export function sentBack(flags: number, payload = ''): VectorStep {
  return { from: 'server', transport: 'tcp', flags, payload };
}

export function hexOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('hex');
}
