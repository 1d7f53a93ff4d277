/** The viewer's script, made at its first use and kept compressed; a failure is not kept. */
import { Worker } from 'node:worker_threads';

export interface ViewerScript {
  readonly gzipped: Uint8Array;
  /** Entity tag of the script itself. */
  readonly tag: string;
}

/** The returned function rejects with what the thread threw. */
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
    const worker = new Worker(new URL('./viewer-worker.ts', import.meta.url));
    // A process that ends meanwhile does not wait for it.
    worker.unref();
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the viewer's thread ended with ${code} and no script`)));
  });
}
