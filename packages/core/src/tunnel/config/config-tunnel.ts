/**
 * Owns what a customer's configuration is written from, and what a format is. Everything in it is typed or canonical:
 * nothing that a caller wrote freely reaches a shell, a router's prompt or a file.
 */
import type { Family, Prefix } from '../../net/prefix.ts';
import type { TunnelSizes } from '../mtu.ts';
import type { TunnelType } from '../tunnel.ts';

/** Texts of a pair of addresses, without a length. */
export interface PairTexts {
  readonly router: string;
  readonly customer: string;
}

export interface ConfigEnd {
  /** Names of letters, digits, dots, dashes and underscores. */
  readonly location: string;
  readonly router: string;
  /** GRE's key or Geneve's VNI; unique in the installation, so that devices are named by it. */
  readonly number: number;
  /** 0 for the one that replies take first; the others stand by. */
  readonly order: number;
  /** The router's address outside. */
  readonly address: string;
  readonly inner4: PairTexts;
  readonly inner6: PairTexts;
}

export interface ConfigTunnel {
  readonly uuid: string;
  readonly type: TunnelType;
  /** GRE: whether packets carry the number as key. */
  readonly keyed: boolean;
  /** Of the addresses outside. */
  readonly outer: Family;
  /** The customer's address outside. */
  readonly endpoint: string;
  readonly ips: readonly Prefix[];
  readonly sizes: TunnelSizes;
  /** The same for all ends of the tunnel, whichever of them are written: names its routing table. */
  readonly tableNumber: number;
  readonly ends: readonly ConfigEnd[];
}

export interface ConfigWriter {
  /** What the system lacks for this tunnel, to follow its name; undefined: nothing. */
  lacks(tunnel: ConfigTunnel): string | undefined;
  /** The text, with a newline at its end. */
  write(tunnel: ConfigTunnel): string;
}

/** As Linux, RouterOS and netplan call it. 9 characters at most: numbers end at 2^24. */
export function deviceName(end: ConfigEnd): string {
  return `lv${end.number.toString(36)}`;
}

export function subnetsOf(tunnel: ConfigTunnel, family: Family): readonly Prefix[] {
  return tunnel.ips.filter((prefix) => prefix.family === family);
}

/** `GRE tunnel 0190…`, and where its ends are: what every text begins with. */
export function titleOf(tunnel: ConfigTunnel): readonly string[] {
  const ends = tunnel.ends.map((end) => `${end.router} at ${end.location}`);
  return [`${tunnel.type} tunnel ${tunnel.uuid} to ${ends.join(', ')}`];
}

/** Said in every format. */
export function notesOf(tunnel: ConfigTunnel): readonly string[] {
  const notes = [
    `${tunnel.endpoint} has to be an address of this machine; behind address translation put the translated-to one here.`,
  ];
  if (tunnel.ends.length > 1)
    notes.push('Replies take the first end; the others stand by for when its device is down.');
  return notes;
}

export function commentLines(mark: string, lines: readonly string[]): readonly string[] {
  return lines.map((line) => `${mark} ${line}`);
}
