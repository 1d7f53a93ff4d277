/**
 * Real primaries on loopback, each with the same zones and a TSIG key that may update them: BIND, Knot, PowerDNS (with its
 * HTTP API too). Started, killed and started again by tests. Test code only.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TsigKey } from '@levee/core/rdns/zone-settings.ts';
import { waitUntil } from '../../../store/testing/wait-until.ts';
import { type Daemon, freePort, makeFolder, startDaemon } from './daemon.ts';
import { digStatus } from './dig.ts';

export const testKey: TsigKey = {
  name: 'levee-test',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('a secret of thirty-two octets!!!').toString('base64'),
};

export interface Primary {
  readonly port: number;
  /** Of the HTTP API, where it has one. */
  readonly url?: string;
  readonly apiKey?: string;
  /** Again after `kill`, with what it had stored. Resolves when it serves the first zone. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Kills it and takes its folder away. */
  remove(): Promise<void>;
}

const zoneText = (zone: string, more: readonly string[]) =>
  [
    `$ORIGIN ${zone}.`,
    '$TTL 300',
    '@ IN SOA ns1.example.org. hostmaster.example.org. 1 3600 600 86400 60',
    '@ IN NS ns1.example.org.',
    ...more,
    '',
  ].join('\n');

const fileOf = (zone: string) => zone.replaceAll('/', '_');

interface Program {
  readonly folder: string;
  readonly port: number;
  readonly zones: readonly string[];
  readonly launch: () => Daemon;
  readonly remove: () => void;
  readonly url?: string;
  readonly apiKey?: string;
}

function primary({ port, zones, launch, remove, url, apiKey }: Program): Primary {
  let daemon: Daemon | undefined;
  const kill = async () => {
    await daemon?.kill();
    daemon = undefined;
  };
  return {
    port,
    ...(url !== undefined && { url }),
    ...(apiKey !== undefined && { apiKey }),
    async start() {
      daemon = launch();
      try {
        await waitUntil(
          async () => (await digStatus(port, zones[0] ?? '', 'SOA').catch(() => '')) === 'NOERROR',
          'the primary serves its zone',
        );
      } catch (error) {
        const output = daemon.output();
        await kill();
        throw new Error(`${(error as Error).message}\n${output}`);
      }
    },
    kill,
    async remove() {
      await kill();
      remove();
    },
  };
}

/** `records`: lines in every zone. `denied`: names in every zone that the key may not write. */
export async function bindPrimary(
  zones: readonly string[],
  records: readonly string[] = [],
  denied: readonly string[] = ['99'],
): Promise<Primary> {
  const folder = makeFolder('named');
  const port = await freePort();
  chmodSync(folder.path, 0o777);
  for (const zone of zones) writeFileSync(join(folder.path, fileOf(zone)), zoneText(zone, records));
  const config = [
    `key "${testKey.name}" { algorithm ${testKey.algorithm}; secret "${testKey.secret}"; };`,
    'options {',
    `  directory "${folder.path}"; pid-file none; session-keyfile none; managed-keys-directory "${folder.path}";`,
    `  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no;`,
    '  notify no; allow-transfer { none; };',
    '};',
    'controls { };',
    ...zones.map((zone) =>
      [
        `zone "${zone}" { type primary; file "${fileOf(zone)}"; update-policy {`,
        ...denied.map((label) => `deny ${testKey.name} name "${label}.${zone}";`),
        `grant ${testKey.name} zonesub PTR; }; };`,
      ].join(' '),
    ),
  ];
  writeFileSync(join(folder.path, 'named.conf'), config.join('\n'));
  const launch = () => startDaemon('named', ['-g', '-n', '1', '-c', join(folder.path, 'named.conf')]);
  return primary({ folder: folder.path, port, zones, launch, remove: folder.remove });
}

export async function knotPrimary(zones: readonly string[], records: readonly string[] = []): Promise<Primary> {
  const folder = makeFolder('knot');
  const port = await freePort();
  for (const zone of zones) writeFileSync(join(folder.path, fileOf(zone)), zoneText(zone, records));
  const config = [
    'server:',
    `  rundir: "${folder.path}"`,
    `  listen: 127.0.0.1@${port}`,
    'log:',
    '  - target: stderr',
    '    any: info',
    'database:',
    `  storage: "${folder.path}"`,
    'key:',
    `  - id: ${testKey.name}`,
    `    algorithm: ${testKey.algorithm}`,
    `    secret: ${testKey.secret}`,
    'acl:',
    '  - id: update',
    `    key: ${testKey.name}`,
    '    action: update',
    'zone:',
    ...zones.flatMap((zone) => [
      `  - domain: "${zone}"`,
      `    storage: "${folder.path}"`,
      `    file: "${fileOf(zone)}"`,
      '    acl: update',
      '    zonefile-sync: -1',
      '    journal-content: all',
      '    zonefile-load: none',
    ]),
  ];
  // The file is read once, into the journal: from then on that is the zone.
  writeFileSync(
    join(folder.path, 'knot.conf'),
    config.join('\n').replaceAll('zonefile-load: none', 'zonefile-load: difference'),
  );
  const launch = () => startDaemon('knotd', ['-c', join(folder.path, 'knot.conf')]);
  return primary({ folder: folder.path, port, zones, launch, remove: folder.remove });
}

export async function powerDnsPrimary(zones: readonly string[], records: readonly string[] = []): Promise<Primary> {
  const folder = makeFolder('pdns');
  const [port, apiPort] = [await freePort(), await freePort()];
  const apiKey = 'test-api-key';
  mkdirSync(join(folder.path, 'run'));
  const database = join(folder.path, 'pdns.sqlite3');
  const schema = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql';
  execFileSync('sqlite3', [database, `.read ${schema}`]);
  const config = [
    'launch=gsqlite3',
    `gsqlite3-database=${database}`,
    'local-address=127.0.0.1',
    `local-port=${port}`,
    'api=yes',
    `api-key=${apiKey}`,
    'webserver=yes',
    'webserver-address=127.0.0.1',
    `webserver-port=${apiPort}`,
    'dnsupdate=yes',
    'allow-dnsupdate-from=127.0.0.0/8',
    `socket-dir=${join(folder.path, 'run')}`,
    'daemon=no',
    'guardian=no',
    'receiver-threads=1',
    'distributor-threads=1',
  ];
  writeFileSync(join(folder.path, 'pdns.conf'), config.join('\n'));
  const util = (...args: string[]) =>
    execFileSync('pdnsutil', ['--config-dir', folder.path, ...args], { stdio: 'pipe' });
  util('import-tsig-key', testKey.name, testKey.algorithm, testKey.secret);
  for (const zone of zones) {
    const file = join(folder.path, fileOf(zone));
    writeFileSync(file, zoneText(zone, records));
    util('load-zone', zone, file);
    util('set-meta', zone, 'TSIG-ALLOW-DNSUPDATE', testKey.name);
  }
  const launch = () => startDaemon('pdns_server', [`--config-dir=${folder.path}`]);
  const url = `http://127.0.0.1:${apiPort}`;
  return primary({ folder: folder.path, port, zones, launch, remove: folder.remove, url, apiKey });
}
