/**
 * Which types of tunnels this kernel has, without making one: a module that is there is not loaded before a tunnel needs it,
 * because GRE's brings devices of its own into every namespace. A kernel that turns out to lack what is told here fails the
 * tunnel, with the reason.
 */
import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { kernelModules, type TunnelType, tunnelTypes } from '@levee/core/tunnel/tunnel.ts';

export interface ModulePlaces {
  /** Loaded ones, and those that are part of the kernel. */
  readonly loaded: string;
  /** `modules.dep` and `modules.builtin`. */
  readonly lists: string;
}

const usualPlaces: ModulePlaces = { loaded: '/sys/module', lists: `/lib/modules/${release()}` };

/** Over one family at least. */
export function tunnelCapabilities(places: ModulePlaces = usualPlaces): readonly string[] {
  const listed = ['modules.dep', 'modules.builtin'].map((name) => readIfThere(`${places.lists}/${name}`)).join('\n');
  const has = (module: string): boolean =>
    existsSync(`${places.loaded}/${module}`) || new RegExp(`/${module}\\.ko`, 'm').test(listed);
  const isPossible = (type: TunnelType): boolean => Object.values(kernelModules[type]).some(has);
  return tunnelTypes.filter(isPossible).map((type) => `tunnel:${type}`);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
