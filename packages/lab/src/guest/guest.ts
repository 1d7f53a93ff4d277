/**
 * A machine of its own kernel for experiments that this machine's kernel cannot do: QEMU without hardware help, Debian's
 * kernel, the host's files read-only. Owns the process and its end. Must never leave a guest behind, nor let one reach a
 * network: it has none but what the job makes inside.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findGuestKernel } from './guest-kernel.ts';
import { buildInitramfs, endMark, type GuestJob, hostTag } from './initramfs.ts';

const emulator = 'qemu-system-x86_64';

export interface GuestOptions extends GuestJob {
  readonly memoryMegabytes: number;
  readonly processors: number;
  /** The guest is ended then, whatever it does. */
  readonly deadlineMilliseconds: number;
  /** A line that the job wrote to its output. */
  line(text: string): void;
}

export interface GuestOutcome {
  /** The job's own; undefined: the guest did not come so far, or was ended at its deadline. */
  readonly status: number | undefined;
  readonly timedOut: boolean;
  /** What the kernel said, for when something went wrong. */
  readonly console: string;
}

/** Why no guest can be started here, or nothing. */
export function guestObstacle(): string | undefined {
  const needed = [
    ['/usr/bin/qemu-system-x86_64', 'qemu-system-x86'],
    ['/bin/busybox', 'busybox-static'],
    ['/sbin/modprobe', 'kmod'],
  ] as const;
  for (const [file, name] of needed) if (!existsSync(file)) return `${file} (Debian package ${name}) is missing`;
  if (findGuestKernel() === undefined) return 'no kernel for guests was fetched: tools/fetch-guest-kernel.ts does it';
  return undefined;
}

/** Throws where `guestObstacle` tells one. */
export async function runGuest(options: GuestOptions): Promise<GuestOutcome> {
  const kernel = findGuestKernel();
  if (kernel === undefined) throw new Error(guestObstacle());
  const directory = mkdtempSync(join(tmpdir(), `levee-guest-${process.pid}-`));
  const initramfs = join(directory, 'initramfs');
  const consoleFile = join(directory, 'console');
  writeFileSync(initramfs, buildInitramfs(kernel, options));
  const child = spawn(
    emulator,
    [
      // Without memory protection keys: V8 uses them where it finds them, and falls over them here now and then.
      ...[
        '-accel',
        'tcg',
        '-cpu',
        'max,pku=off',
        '-smp',
        String(options.processors),
        '-m',
        String(options.memoryMegabytes),
      ],
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
      ...['-kernel', kernel.image, '-initrd', initramfs],
      ...['-append', 'console=ttyS0 quiet panic=-1 mitigations=off'],
      ...['-serial', `file:${consoleFile}`, '-serial', 'stdio'],
      // `remap`: the host's root may span several devices.
      ...['-virtfs', `local,path=/,mount_tag=${hostTag},security_model=none,readonly=on,multidevs=remap`],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const end = (): boolean => child.kill('SIGKILL');
  process.on('exit', end);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, options.deadlineMilliseconds);
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk;
  });
  let status: number | undefined;
  try {
    const closed = new Promise<void>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', () => resolve());
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (text) => {
      if (text.startsWith(endMark)) status = Number(text.slice(endMark.length));
      else options.line(text);
    });
    await closed;
    const console = existsSync(consoleFile) ? readFileSync(consoleFile, 'utf8') : '';
    return { status, timedOut, console: complaint + console };
  } finally {
    clearTimeout(timer);
    process.off('exit', end);
    end();
    rmSync(directory, { recursive: true, force: true });
  }
}
