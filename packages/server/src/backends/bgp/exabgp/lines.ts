/** Lines of a stream, as they are complete. */
import type { Readable } from 'node:stream';

export function readLines(stream: Readable, heard: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') heard(line);
  });
}
