/**
 * A real FastNetMon Community (Debian package fastnetmon) beside ours: fed by sFlow or NetFlow, telling by its notify script when it found
 * an address attacked. Set as fast as it can be: averages over one second, looked at each second, the shortest its
 * configuration takes. Must never report usage, announce or block anything.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, makeFolder, startProcess, untilServing } from '@levee/lab/bgp/daemon.ts';

export interface FastnetmonOptions {
  readonly networks: readonly string[];
  /** Packets a second to one address, above which it is attacked. */
  readonly threshold: number;
}

export interface Fastnetmon {
  readonly pid: number;
  /** For sFlow. */
  readonly port: number;
  readonly netflowPort: number;
  /** By address: milliseconds since 1970 at which its script was called first. */
  found(): Map<string, number>;
  stop(): Promise<void>;
}

export async function startFastnetmon({ networks, threshold }: FastnetmonOptions): Promise<Fastnetmon> {
  const folder = makeFolder('fastnetmon');
  const place = (name: string): string => join(folder.path, name);
  const port = await freePort();
  const netflowPort = await freePort();
  const script = place('notify.sh');
  const times = place('times');
  // Its arguments: address, direction, packets a second, action. What it writes on standard input is not read.
  writeFileSync(script, `#!/bin/sh\n[ "$4" = ban ] && echo "$1 $(date +%s%3N)" >> ${times}\ncat > /dev/null\n`, {
    mode: 0o755,
  });
  writeFileSync(place('networks'), `${networks.join('\n')}\n`);
  writeFileSync(place('none'), '');
  const settings = {
    disable_usage_report: 'on',
    logging_level: 'info',
    enable_ban: 'on',
    enable_ban_ipv6: 'on',
    process_incoming_traffic: 'on',
    process_outgoing_traffic: 'on',
    ban_details_records_count: 1,
    ban_time: 0,
    networks_list_path: place('networks'),
    white_list_path: place('none'),
    check_period: 1,
    enable_connection_tracking: 'off',
    ban_for_pps: 'on',
    ban_for_bandwidth: 'off',
    ban_for_flows: 'off',
    threshold_pps: threshold,
    average_calculation_time: 1,
    speed_calculation_delay: 1,
    sflow: 'on',
    sflow_port: port,
    sflow_host: '127.0.0.1',
    netflow: 'on',
    netflow_port: netflowPort,
    netflow_host: '127.0.0.1',
    notify_script_path: script,
    monitor_local_ip_addresses: 'off',
    monitor_openvz_vps_ip_addresses: 'off',
    cli_stats_file_path: place('stats'),
    cli_stats_ipv6_file_path: place('stats6'),
    enable_api: 'off',
    prometheus: 'off',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(place('fastnetmon.conf'), `${lines.join('\n')}\n`);
  const daemon = startProcess('fastnetmon', [
    ...['--configuration_file', place('fastnetmon.conf'), '--log_file', place('log')],
    '--disable_pid_logic',
  ]);
  const log = (): string => (existsSync(place('log')) ? readFileSync(place('log'), 'utf8') : '');
  const stop = async (): Promise<void> => {
    await daemon.kill();
    folder.remove();
  };
  try {
    await untilServing(daemon, async () => /sflow.*listen/i.test(log()), 'fastnetmon');
  } catch (error) {
    const said = log();
    await stop();
    throw new Error(`${(error as Error).message}\n${said}`);
  }
  return {
    pid: daemon.pid ?? 0,
    port,
    netflowPort,
    found: () => {
      const found = new Map<string, number>();
      for (const line of existsSync(times) ? readFileSync(times, 'utf8').trimEnd().split('\n') : []) {
        const [address = '', at] = line.split(' ');
        if (!found.has(address)) found.set(address, Number(at));
      }
      return found;
    },
    stop,
  };
}
