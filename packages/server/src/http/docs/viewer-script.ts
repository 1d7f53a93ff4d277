/**
 * The viewer's script, made at its first use by a program of its own, and kept compressed; a failure is not kept. In this
 * process, or a thread of it, loading the package leaves 40 MB behind, and takes the time of 140 ms of requests.
 */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { join } from 'node:path';

export interface ViewerScript {
  readonly gzipped: Buffer;
  readonly tag: string;
}

const program = join(import.meta.dirname, 'print-viewer.ts');
const limits = { timeout: 60_000, maxBuffer: 16 << 20 };

/** The returned function rejects when the program fails, with what it said. */
export function viewerScriptSource(): () => Promise<ViewerScript> {
  let made: Promise<ViewerScript> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

function make(): Promise<ViewerScript> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program], { ...limits, encoding: 'buffer' }, (error, gzipped) => {
      if (error === null) resolve({ gzipped, tag: `"${hash('sha1', gzipped, 'base64url')}"` });
      else reject(error);
    });
  });
}
