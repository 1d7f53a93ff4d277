/** Waits for the other end of a stream to take what was written to it. */
import type { ServerResponse } from 'node:http';

/** Resolves when the socket has taken all of it, or is gone. */
export function untilDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
