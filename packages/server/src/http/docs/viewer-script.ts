/**
 * The viewer's script, made at its first use by a program of its own, and kept compressed; a failure is not kept. In this
 * process, or a thread of it, loading the package leaves 40 MB behind, and takes the time of 140 ms of requests.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { compressedText, type ServedText } from './served-text.ts';

const program = join(import.meta.dirname, 'print-viewer.ts');
const limits = { timeout: 60_000, maxBuffer: 16 << 20 };

/** The returned function rejects when the program fails, with what it said. */
export function viewerScriptSource(): () => Promise<ServedText> {
  let made: Promise<ServedText> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

function make(): Promise<ServedText> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program], { ...limits, encoding: 'buffer' }, (error, gzipped) => {
      if (error === null) resolve(compressedText('text/javascript', gzipped));
      else reject(error);
    });
  });
}
