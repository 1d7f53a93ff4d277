/** Lines of a stream, as they are complete. Never holds more than one line's worth. */
import type { Readable } from 'node:stream';

/** Characters. */
const longestLine = 4 * 1024 * 1024;

/** `tooLong`: once; nothing is heard any more. */
export function readLines(stream: Readable, heard: (line: string) => void, tooLong: () => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  const read = (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') heard(line);
    if (rest.length <= longestLine) return;
    rest = '';
    stream.off('data', read);
    stream.resume();
    tooLong();
  };
  stream.on('data', read);
}
