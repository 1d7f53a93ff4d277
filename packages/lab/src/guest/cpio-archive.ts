/**
 * Writes the archive that Linux takes as its first file system: cpio's "new ASCII" format (cpio(5);
 * Documentation/driver-api/early-userspace/buffer-format.rst). Owns the format alone; knows no file of the machine.
 */

export interface ArchiveEntry {
  /** Without a leading slash; what it lies in has to come before it. */
  readonly path: string;
  /** Absent: a directory. */
  readonly content?: Uint8Array | string;
  readonly executable?: boolean;
}

const directoryType = 0o040000;
const regularType = 0o100000;
const lastName = 'TRAILER!!!';

export function writeArchive(entries: readonly ArchiveEntry[]): Buffer {
  const parts: Buffer[] = [];
  const write = (inode: number, path: string, mode: number, content: Buffer): void => {
    const name = Buffer.from(`${path}\0`);
    // inode, mode, uid, gid, links, mtime, size, device and special device (major, minor each), length of the name, check
    const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
    const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
    parts.push(aligned(Buffer.concat([Buffer.from(header), name])), aligned(content));
  };
  entries.forEach(({ path, content, executable }, index) => {
    if (content === undefined) write(index + 1, path, directoryType | 0o755, Buffer.alloc(0));
    else write(index + 1, path, regularType | (executable ? 0o755 : 0o644), Buffer.from(content));
  });
  write(0, lastName, 0, Buffer.alloc(0));
  return Buffer.concat(parts);
}

/** Headers with their names, and contents, end at multiples of four octets. */
function aligned(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
