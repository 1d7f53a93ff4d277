/**
 * The guest's first file system: busybox, the modules that reach the host's files, and the script that hands over to
 * the job. Owns how a guest comes up and ends. The host's root is the guest's, read-only, below a layer in memory: what
 * the job writes is gone with it.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type ArchiveEntry, writeArchive } from './cpio-archive.ts';
import type { GuestKernel } from './guest-kernel.ts';

/** The name under which QEMU offers the host's files. */
export const hostTag = 'host';
/** Follows the job's own output on its serial line, with the status that it ended with. */
export const endMark = 'guest ended with status ';

const busybox = '/bin/busybox';
const bootModules = ['virtio_pci', '9pnet_virtio', '9p', 'overlay'];

export interface GuestJob {
  readonly command: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Kernel modules that the job is sure to need: together they load ten times faster than one by one on demand. */
  readonly modules: readonly string[];
  /** Absolute paths of files and folders that are brought into memory: each file over 9p costs the guest milliseconds. */
  readonly near: readonly string[];
}

export function buildInitramfs(kernel: GuestKernel, job: GuestJob): Buffer {
  const modules = moduleFiles(kernel, bootModules);
  const entries: ArchiveEntry[] = [
    ...['bin', 'dev', 'proc', 'sys', 'modules', 'host', 'layer', 'near', 'root'].map((path) => ({ path })),
    { path: 'bin/busybox', content: readFileSync(busybox), executable: true },
    {
      path: 'load',
      content: '#!/bin/busybox sh\nexec /bin/busybox chroot /root /sbin/modprobe "$@"\n',
      executable: true,
    },
    {
      path: 'init',
      content: initScript(
        modules.map((file) => basename(file)),
        kernel,
        job,
      ),
      executable: true,
    },
    ...modules.map((file) => ({ path: `modules/${basename(file)}`, content: readFileSync(file) })),
    ...nearEntries(job.near),
  ];
  return gzipSync(writeArchive(entries), { level: 1 });
}

/** Files of the modules and of what they need, in the order of loading. */
function moduleFiles({ moduleRoot, release }: GuestKernel, names: readonly string[]): string[] {
  const args = ['-d', moduleRoot, '-S', release, '--all', '--show-depends', ...names];
  const shown = execFileSync('modprobe', args, { encoding: 'utf8' });
  return [...new Set(shown.split('\n').flatMap((line) => /^insmod (\S+)/.exec(line)?.[1] ?? []))];
}

/** The same paths below `near`, which lies above the host's files. */
function nearEntries(paths: readonly string[]): ArchiveEntry[] {
  const entries = new Map<string, ArchiveEntry>();
  const add = (path: string): void => {
    for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
      const folder = `near${path.slice(0, end)}`;
      if (!entries.has(folder)) entries.set(folder, { path: folder });
    }
    entries.set(`near${path}`, { path: `near${path}`, content: readFileSync(path) });
  };
  for (const path of paths) {
    if (statSync(path).isFile()) {
      add(path);
      continue;
    }
    for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) add(join(entry.parentPath, entry.name));
    }
  }
  return [...entries.values()];
}

/**
 * What else is needed the kernel has loaded by itself: it starts `load` in this file system, which hands on to the host's
 * modprobe, and that looks below /lib/modules. ttyS1 is the job's; ttyS0 the kernel's.
 */
function initScript(modules: readonly string[], { moduleRoot, release }: GuestKernel, job: GuestJob): string {
  const variables = Object.entries(job.environment).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return [
    '#!/bin/busybox sh',
    'PATH=/bin; /bin/busybox --install -s /bin',
    'mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev',
    ...modules.map((file) => `insmod /modules/${file}`),
    `mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=1048576,cache=loose ${hostTag} /host`,
    'mount -t tmpfs layer /layer; mkdir /layer/upper /layer/work',
    'mount -t overlay -o lowerdir=/near:/host,upperdir=/layer/upper,workdir=/layer/work overlay /root',
    'for at in proc sys dev; do mount --bind /$at /root/$at; done',
    'mount -t tmpfs run /root/run',
    'mkdir -p /root/lib/modules',
    `ln -s ${quoted(`${moduleRoot}/lib/modules/${release}`)} /root/lib/modules/${release}`,
    'echo /load >/proc/sys/kernel/modprobe',
    ...(job.modules.length > 0 ? [`/load -a ${job.modules.join(' ')}`] : []),
    'stty -F /dev/ttyS1 raw',
    'export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...variables,
    `/bin/busybox chroot /root /bin/sh -c ${quoted(`cd ${quoted(job.directory)} && exec "$@"`)} job ${job.command
      .map(quoted)
      .join(' ')} >/dev/ttyS1 2>&1 </dev/null`,
    `echo "${endMark}$?" >/dev/ttyS1`,
    '/bin/busybox poweroff -f',
    '',
  ].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
