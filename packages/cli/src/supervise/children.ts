/**
 * Owns how the children of `levee up` are called: program, arguments, environment. Each gets the settings it reads
 * and nothing else: the edge, which works on the kernel, and the detector, which anybody can
 * send to, never see the database's address or the operator key.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { commandInNamespace } from '@levee/edge/netns.ts';
import { isDetectionHere } from '../config/detection-fault.ts';
import { type Loaded, toEnvironment } from '../config/load.ts';
import { type ConfigOf, settings } from '../config/settings.ts';

/** Absolute, real paths. */
export interface Place {
  readonly data: string;
  readonly edgeState: string;
  readonly detectorState: string;
}

interface Call {
  readonly argv: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /**
   * The data directory: children name their unix socket from there, so that its path stays below the limit of 107 bytes
   * (unix(7)) however deep the directory lies.
   */
  readonly directory: string;
}

/** Absolute, and short however deep the data directory lies. */
const controlSocket = 'unix:/proc/self/cwd/control.sock';
const program = join(import.meta.dirname, '..', 'levee.ts');

/** @param address where it listened before: asked for port 0, it keeps the port that it got at first. */
export function controlProcess(loaded: Loaded, place: Place, address: string | undefined): Call {
  const argv = [process.execPath, program, 'serve', '--no-config'];
  const { edgeDriver, edgeRouterKey, detectRole, detectKey } = loaded.config;
  if (edgeDriver !== 'off' && edgeRouterKey === undefined) argv.push('--local-router', place.edgeState);
  // A collector has no key.
  if (isDetectionHere(loaded.config) && detectRole !== 'collect' && detectKey === undefined)
    argv.push('--local-detector', place.detectorState);
  const environment: NodeJS.ProcessEnv = {
    ...inherited(),
    ...toEnvironment(loaded, 'serve'),
    [settings.dataDirectory.environment]: '.',
  };
  if (address !== undefined) environment[settings.listen.environment] = new URL(address).host;
  return { argv, environment, directory: place.data };
}

export function edgeProcess(loaded: Loaded, place: Place): Call {
  const environment: NodeJS.ProcessEnv = {
    ...inherited(),
    ...toEnvironment(loaded, 'edge'),
    [settings.dataDirectory.environment]: '.',
    [settings.edgeStateDirectory.environment]: place.edgeState,
    [settings.edgeControl.environment]: controlSocket,
  };
  const command = [process.execPath, program, 'edge', '--no-config'];
  if (!isRoot()) return { argv: command, environment, directory: place.data };
  const confined = ['setpriv', '--no-new-privs', ...keptCapabilities('net_admin', place), ...command];
  return { argv: commandInNamespace(loaded.config.edgeNetns, confined), environment, directory: place.data };
}

/** @param listen where it received before: asked for port 0, it keeps the ports that it got at first. */
export function detectorProcess(loaded: Loaded, place: Place, listen: readonly string[] | undefined): Call {
  const environment: NodeJS.ProcessEnv = {
    ...inherited(),
    ...toEnvironment(loaded, 'detect'),
    [settings.dataDirectory.environment]: '.',
    [settings.detectStateDirectory.environment]: place.detectorState,
    [settings.detectControl.environment]: controlSocket,
  };
  // It works in the data directory: what was meant from here has to be said from everywhere.
  for (const name of ['detectNatsCredentials', 'detectNatsCa', 'detectNatsCertificate', 'detectNatsKey'] as const) {
    const path = loaded.config[name];
    if (path !== undefined) environment[settings[name].environment] = resolve(path);
  }
  if (listen !== undefined && loaded.config.flowListen.some(({ port }) => port === 0)) {
    environment[settings.flowListen.environment] = listen.join(',');
  }
  const command = [process.execPath, program, 'detect', '--no-config'];
  if (!isRoot()) return { argv: command, environment, directory: place.data };
  const argv = ['setpriv', '--no-new-privs', ...keptCapabilities('net_bind_service', place), ...command];
  return { argv, environment, directory: place.data };
}

/**
 * Of root's capabilities a child keeps one (capabilities(7)): the edge that which nftables asks for, the detector that of low
 * ports; and the one that opens files of others only where it could not read its own program or state otherwise.
 */
function keptCapabilities(name: 'net_admin' | 'net_bind_service', place: Place): string[] {
  const closed = [program, process.execPath, place.data].some((path) => !isOpenToPlainRoot(path));
  const kept = `-all,+${name}${closed ? ',+dac_override' : ''}`;
  return ['--bounding-set', kept, '--inh-caps', kept];
}

/** Can uid 0 get there by owner's and others' rights alone? */
function isOpenToPlainRoot(path: string): boolean {
  const { uid, mode } = statSync(path);
  const needed = path === program ? 0o4 : 0o1;
  const granted = uid === 0 ? mode >> 6 : mode;
  return (granted & needed) !== 0 && (path === '/' || isOpenToPlainRoot(dirname(path)));
}

/** Why the local edge cannot be started as configured; undefined when it can. */
export function edgeObstacle({ edgeNetns }: ConfigOf<'up'>): string | undefined {
  if (edgeNetns === undefined || !isRoot() || existsSync(join('/run/netns', edgeNetns))) return undefined;
  return `${settings.edgeNetns.environment}: there is no network namespace ${edgeNetns} (ip netns list)`;
}

function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** Our own environment without any setting: children get theirs from the effective configuration alone. */
function inherited(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(?:LEVEE_|DATABASE_URL|NODE_CHANNEL_|npm_)/.test(name),
  );
  return Object.fromEntries(entries);
}
