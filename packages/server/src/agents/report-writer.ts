/**
 * Gathers the reports that arrive while others are being stored and stores them together. A report is answered when it
 * is durable, and known to this replica's registry by then.
 */
import type pg from 'pg';
import { type StoredReport, saveReports } from '../store/reports.ts';
import type { RouterRegistry } from './router-registry.ts';

export interface ReportWriter {
  /** False: the router does not exist any more. Throws what the driver throws. */
  save(report: StoredReport): Promise<boolean>;
}

interface Waiting {
  readonly report: StoredReport;
  readonly resolve: (known: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** Bounds a transaction; ten thousand routers' acknowledgements are ten of them. */
const TOGETHER = 1_000;

export function createReportWriter(pool: pg.Pool, registry: RouterRegistry): ReportWriter {
  let waiting: Waiting[] = [];
  let writing = false;

  async function write(): Promise<void> {
    writing = true;
    // Requests that are readable now join the first batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const batch = takeBatch();
      try {
        const saved = await saveReports(
          pool,
          batch.map(({ report }) => report),
        );
        const known = batch.filter(({ report }) => saved.routerUuids.has(report.routerUuid));
        registry.stored(
          known.map(({ report }) => report),
          saved.atMilliseconds,
        );
        for (const { report, resolve } of batch) resolve(saved.routerUuids.has(report.routerUuid));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    writing = false;
  }

  /** One report a router: a second one of the same waits for the next batch, in order. */
  function takeBatch(): Waiting[] {
    const routers = new Set<string>();
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    for (const each of waiting) {
      if (batch.length >= TOGETHER || routers.has(each.report.routerUuid)) rest.push(each);
      else {
        routers.add(each.report.routerUuid);
        batch.push(each);
      }
    }
    waiting = rest;
    return batch;
  }

  return {
    save: (report) =>
      new Promise((resolve, reject) => {
        waiting.push({ report, resolve, reject });
        if (!writing) void write();
      }),
  };
}
