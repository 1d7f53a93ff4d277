/**
 * One Levee at a time owns an embedded database, and what a killed one left behind is stopped before the next starts.
 * Signals only PostgreSQL processes that work in the data directory, and none while their owner lives.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EmbeddedLayout } from './directory.ts';
import { liveProcess, postgresProcessesIn } from './process-table.ts';

export type ClaimResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** Takes the record of ownership, unless the process that it names still lives. */
export function claim(recordPath: string): ClaimResult {
  const self = liveProcess(process.pid);
  if (self === undefined) return { ok: false, message: '/proc is not mounted: the embedded database needs it' };
  for (;;) {
    try {
      writeFileSync(recordPath, `${JSON.stringify(self)}\n`, { flag: 'wx', mode: 0o600 });
      return { ok: true };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readRecord(recordPath);
    if (holder !== undefined && liveProcess(holder.pid)?.startTicks === holder.startTicks) {
      return { ok: false, message: `process ${holder.pid} already runs the embedded database of this data directory` };
    }
    rmSync(recordPath, { force: true });
  }
}

export function release(recordPath: string): void {
  rmSync(recordPath, { force: true });
}

function readRecord(path: string): { pid: number; startTicks: number } | undefined {
  try {
    const { pid, startTicks } = JSON.parse(readFileSync(path, 'utf8'));
    return typeof pid === 'number' && typeof startTicks === 'number' ? { pid, startTicks } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Ends what a dead owner left: first it may finish the shutdown that its parent's death began, then it is asked for a
 * fast shutdown, then an immediate one (recovery replays the log), then it is killed.
 * Needs the claim. Returns how many processes were found.
 */
export async function stopLeftovers(dataDirectory: string, stepMilliseconds = 10_000): Promise<number> {
  const found = postgresProcessesIn(dataDirectory).length;
  for (const signal of [undefined, 'SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    // Whoever is orphaned is already going: a short while is enough before asking.
    const deadline = Date.now() + (signal === undefined ? Math.min(1_000, stepMilliseconds) : stepMilliseconds);
    if (signal !== undefined) for (const pid of postgresProcessesIn(dataDirectory)) signalIfAlive(pid, signal);
    while (Date.now() < deadline) {
      if (postgresProcessesIn(dataDirectory).length === 0) return found;
      await delay(20);
    }
  }
  throw new Error(
    `PostgreSQL processes ${postgresProcessesIn(dataDirectory).join(', ')} in ${dataDirectory} cannot be ended`,
  );
}

/**
 * Takes away PostgreSQL's own lock files. Only after stopLeftovers: their processes are gone. Left alone they refuse the
 * start when a number has gone to another process since, or lies with a zombie that nobody reaps (a container without
 * an init).
 */
export function clearLocks(layout: EmbeddedLayout): void {
  rmSync(join(layout.data, 'postmaster.pid'), { force: true });
  rmSync(join(layout.socket, '.s.PGSQL.5432.lock'), { force: true });
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
