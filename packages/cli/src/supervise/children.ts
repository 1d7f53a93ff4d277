/**
 * Owns how the two children of `levee up` are called: program, arguments, environment. Each gets the settings it reads
 * and nothing else: the edge, which works on the kernel, never sees the database's address or the operator key.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { commandInNamespace } from '@levee/edge/netns.ts';
import { type Loaded, toEnvironment } from '../config/load.ts';
import { type Config, settings } from '../config/settings.ts';

/** Absolute, real paths. */
export interface Place {
  readonly data: string;
  readonly edgeState: string;
}

interface Call {
  readonly argv: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

const program = join(import.meta.dirname, '..', 'levee.ts');

/** @param address where it listened before: asked for port 0, it keeps the port that it got at first. */
export function controlProcess(loaded: Loaded, place: Place, address: string | undefined): Call {
  const argv = [process.execPath, program, 'serve', '--no-config'];
  if (loaded.config.edgeDriver !== 'off') argv.push('--local-router', place.edgeState);
  const environment: NodeJS.ProcessEnv = {
    ...inherited(),
    ...toEnvironment(loaded, ['listen', 'databaseUrl', 'operatorKey', 'logLevel']),
    [settings.dataDirectory.environment]: place.data,
  };
  if (address !== undefined) environment[settings.listen.environment] = new URL(address).host;
  return { argv, environment };
}

export function edgeProcess(loaded: Loaded, place: Place): Call {
  const environment: NodeJS.ProcessEnv = {
    ...inherited(),
    ...toEnvironment(loaded, ['edgeDriver', 'edgeIngressDevices', 'edgeRouterKey', 'logLevel']),
    [settings.edgeStateDirectory.environment]: place.edgeState,
    [settings.edgeControl.environment]: `unix:${join(place.data, 'control.sock')}`,
  };
  const namespace = isRoot() ? loaded.config.edgeNetns : undefined;
  return { argv: commandInNamespace(namespace, [process.execPath, program, 'edge', '--no-config']), environment };
}

/** Why the local edge cannot be started as configured; undefined when it can. */
export function edgeObstacle({ edgeNetns }: Config): string | undefined {
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
