/**
 * Owns how the two children of `levee up` are called: program, arguments, environment. Each gets the settings it reads
 * and nothing else: the edge, which works on the kernel, never sees the database's address or the operator key.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { commandInNamespace } from '@levee/edge/netns.ts';
import { type Loaded, toEnvironment } from '../config/load.ts';
import { type ConfigOf, settings } from '../config/settings.ts';

/** Absolute, real paths. */
export interface Place {
  readonly data: string;
  readonly edgeState: string;
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

const program = join(import.meta.dirname, '..', 'levee.ts');

/** @param address where it listened before: asked for port 0, it keeps the port that it got at first. */
export function controlProcess(loaded: Loaded, place: Place, address: string | undefined): Call {
  const argv = [process.execPath, program, 'serve', '--no-config'];
  const { edgeDriver, edgeRouterKey } = loaded.config;
  if (edgeDriver !== 'off' && edgeRouterKey === undefined) argv.push('--local-router', place.edgeState);
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
    [settings.edgeControl.environment]: 'unix:/proc/self/cwd/control.sock',
  };
  const command = [process.execPath, program, 'edge', '--no-config'];
  if (!isRoot()) return { argv: command, environment, directory: place.data };
  const confined = ['setpriv', '--no-new-privs', ...capabilityOptions(place), ...command];
  return { argv: commandInNamespace(loaded.config.edgeNetns, confined), environment, directory: place.data };
}

/**
 * The edge keeps one capability of root's, the one that nftables asks for (capabilities(7)); and the one that opens
 * files of others only where it could not read its own program or state otherwise.
 */
function capabilityOptions(place: Place): string[] {
  const closed = [program, process.execPath, place.data].some((path) => !isOpenToPlainRoot(path));
  const kept = `-all,+net_admin${closed ? ',+dac_override' : ''}`;
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
