/**
 * Cuts a stream of bytes into lines. Owns the bound on a line's length; does not look into lines.
 */
export interface LineCutter {
  /** Takes a chunk, gives the lines that it completed; undefined when a line is longer than allowed. */
  push(chunk: Buffer): readonly Buffer[] | undefined;
}

const newline = 0x0a;

/** Empty lines are left out. After a refusal the cutter is spent. */
export function createLineCutter(longestBytes: number): LineCutter {
  let parts: Buffer[] = [];
  let heldBytes = 0;
  return {
    push(chunk) {
      const lines: Buffer[] = [];
      let from = 0;
      for (;;) {
        const end = chunk.indexOf(newline, from);
        if (end === -1) break;
        const last = chunk.subarray(from, end);
        if (heldBytes + last.length > longestBytes) return undefined;
        const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
        if (line.length > 0) lines.push(line);
        parts = [];
        heldBytes = 0;
        from = end + 1;
      }
      const rest = chunk.subarray(from);
      heldBytes += rest.length;
      if (heldBytes > longestBytes) return undefined;
      if (rest.length > 0) parts.push(rest);
      return lines;
    },
  };
}
