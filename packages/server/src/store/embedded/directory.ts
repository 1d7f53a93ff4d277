/**
 * The embedded database's place on disk, and open descriptors to it. PostgreSQL and our own driver reach both folders
 * as /proc/self/fd/N: the unprivileged user needs no way through parents that are closed to it (/root, a home), and a
 * socket's path stays far below its limit of 107 bytes (unix(7)) however deep the data directory lies.
 */
import { chownSync, closeSync, constants, mkdirSync, openSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Identity } from './identity.ts';

export interface EmbeddedLayout {
  /** Real paths. */
  readonly root: string;
  readonly data: string;
  readonly socket: string;
  readonly log: string;
  readonly ownerRecord: string;
}

export function layoutOf(dataDirectory: string): EmbeddedLayout {
  mkdirSync(join(dataDirectory, 'postgres'), { recursive: true, mode: 0o700 });
  const root = realpathSync(join(dataDirectory, 'postgres'));
  return {
    root,
    data: join(root, 'data'),
    socket: join(root, 'socket'),
    log: join(root, 'log'),
    ownerRecord: join(root, 'owner.json'),
  };
}

/** Owner of the data directory, or undefined when there is none yet. */
export function ownerOf(layout: EmbeddedLayout): { uid: number; gid: number } | undefined {
  const stat = statSync(layout.data, { throwIfNoEntry: false });
  return stat === undefined ? undefined : { uid: stat.uid, gid: stat.gid };
}

export function makeFolders(layout: EmbeddedLayout, identity: Identity): void {
  for (const folder of [layout.data, layout.socket]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (identity.drop) chownSync(folder, identity.uid, identity.gid);
  }
}

export interface OpenFolders {
  readonly data: number;
  readonly socket: number;
  /** For this process's own connections. */
  readonly socketDirectory: string;
  close(): void;
}

export function openFolders(layout: EmbeddedLayout): OpenFolders {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY;
  const data = openSync(layout.data, flags);
  const socket = openSync(layout.socket, flags);
  return {
    data,
    socket,
    socketDirectory: `/proc/self/fd/${socket}`,
    close() {
      closeSync(data);
      closeSync(socket);
    },
  };
}
