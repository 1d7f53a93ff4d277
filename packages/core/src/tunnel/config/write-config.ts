/** Owns which formats there are, and what is said about one that cannot have a tunnel. Writes none itself. */
import type { ConfigFormat } from '@levee/contract/schemas/tunnel.ts';
import type { ConfigTunnel, ConfigWriter } from './config-tunnel.ts';
import { ios } from './ios.ts';
import { iproute2 } from './iproute2.ts';
import { junos } from './junos.ts';
import { mikrotik } from './mikrotik.ts';
import { netplan } from './netplan.ts';
import { systemdNetworkd } from './systemd-networkd.ts';
import { vyos } from './vyos.ts';

export const configWriters: Readonly<Record<ConfigFormat, ConfigWriter>> = {
  iproute2,
  'systemd-networkd': systemdNetworkd,
  netplan,
  mikrotik,
  junos,
  ios,
  vyos,
};

export type WrittenConfig =
  | { readonly ok: true; readonly text: string }
  /** What the format's system lacks, and the formats that do not. */
  | { readonly ok: false; readonly lacks: string; readonly instead: readonly string[] };

/** The customer's side of the tunnel's ends. */
export function writeConfig(format: ConfigFormat, tunnel: ConfigTunnel): WrittenConfig {
  const lacks = configWriters[format].lacks(tunnel);
  if (lacks === undefined) return { ok: true, text: configWriters[format].write(tunnel) };
  const instead = Object.entries(configWriters)
    .filter(([, writer]) => writer.lacks(tunnel) === undefined)
    .map(([name]) => name);
  return { ok: false, lacks, instead };
}
