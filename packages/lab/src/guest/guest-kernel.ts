/**
 * The kernel that guests run: Debian's own, unpacked into the checkout's cache and never installed. Owns where it lies
 * and how it gets there; `tools/fetch-guest-kernel.ts` calls for it. Must never change the machine: apt-get only
 * downloads, dpkg only unpacks.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const cacheDirectory = join(import.meta.dirname, '..', '..', '..', '..', '.cache', 'guest-kernel');
/** Depends on the newest kernel of the release. The cloud kernel has no 9p. */
const metaPackage = 'linux-image-amd64';
/** Of 400 MB those 50 that networks, the host's files and the loading of both need; a folder brings all that it holds. */
const wantedParts = [
  './boot/vmlinuz-*',
  './lib/modules/*/modules.*',
  './lib/modules/*/kernel/crypto/*',
  './lib/modules/*/kernel/drivers/net/*.ko',
  './lib/modules/*/kernel/drivers/virtio/*',
  './lib/modules/*/kernel/fs/9p/*',
  './lib/modules/*/kernel/fs/fscache/*',
  './lib/modules/*/kernel/fs/netfs/*',
  './lib/modules/*/kernel/fs/overlayfs/*',
  './lib/modules/*/kernel/lib/*',
  './lib/modules/*/kernel/net/*',
];

export interface GuestKernel {
  /** As `uname -r` says it in the guest. */
  readonly release: string;
  readonly image: string;
  /** What holds `lib/modules/<release>`. */
  readonly moduleRoot: string;
}

/** The newest of the kernels that are there; undefined: none is. */
export function findGuestKernel(): GuestKernel | undefined {
  if (!existsSync(cacheDirectory)) return undefined;
  const releases = readdirSync(cacheDirectory).filter((name) => /^\d/.test(name));
  releases.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const release = releases.at(-1);
  if (release === undefined) return undefined;
  const moduleRoot = join(cacheDirectory, release);
  return { release, image: join(moduleRoot, 'boot', `vmlinuz-${release}`), moduleRoot };
}

/**
 * Downloads and unpacks the kernel where there is none yet. Throws an Error with a sentence where that fails; what is
 * half done is never found by `findGuestKernel`.
 */
export function fetchGuestKernel(say: (text: string) => void): GuestKernel {
  const present = findGuestKernel();
  if (present !== undefined) return present;
  mkdirSync(cacheDirectory, { recursive: true });
  const work = mkdtempSync(join(cacheDirectory, 'new-'));
  try {
    const name = newestKernelPackage();
    say(`fetching ${name} for the guests of the tests …`);
    download(name, work);
    const file = readdirSync(work).find((each) => each.endsWith('.deb'));
    if (file === undefined) throw new Error(`apt-get download left no file of ${name}`);
    const root = join(work, 'root');
    mkdirSync(root);
    const archive = execFileSync('dpkg', ['--fsys-tarfile', join(work, file)], { maxBuffer: 1 << 30 });
    execFileSync('tar', ['-x', '-C', root, '--wildcards', '--no-wildcards-match-slash', ...wantedParts], {
      input: archive,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    const release = readdirSync(join(root, 'lib', 'modules'))[0];
    if (release === undefined) throw new Error(`${name} holds no modules`);
    execFileSync('depmod', ['-b', root, release]);
    renameSync(root, join(cacheDirectory, release));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  const kernel = findGuestKernel();
  if (kernel === undefined) throw new Error('the kernel was unpacked and is not there');
  return kernel;
}

/** Lists of packages may be absent or old, so that a name is not known or its file is gone: then they are fetched once. */
function download(name: string, directory: string): void {
  const attempt = () => spawnSync('apt-get', ['download', '-q', name], { cwd: directory, encoding: 'utf8' });
  if (attempt().status === 0) return;
  spawnSync('apt-get', ['update', '-q'], { stdio: 'ignore' });
  const again = attempt();
  if (again.status !== 0) throw new Error(`apt-get could not download ${name}: ${again.stderr?.trim()}`);
}

function newestKernelPackage(): string {
  const attempt = () => {
    const { stdout } = spawnSync('apt-cache', ['depends', metaPackage], { encoding: 'utf8' });
    return /Depends: (linux-image-\S+)/.exec(stdout ?? '')?.[1];
  };
  const name = attempt();
  if (name !== undefined) return name;
  spawnSync('apt-get', ['update', '-q'], { stdio: 'ignore' });
  const again = attempt();
  if (again === undefined) throw new Error(`apt knows no ${metaPackage}`);
  return again;
}
