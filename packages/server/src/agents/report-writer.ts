/**
 * Gathers the reports that arrive while others are being stored and stores them together. A report is answered when it
 * is durable, and known to this replica's registry by then. When a gathered transaction fails, its reports are tried one
 * by one: what one router sends does not lose another's acknowledgement.
 */
import type pg from 'pg';
import { isUnavailable } from '../store/failure.ts';
import { type StoredReport, saveReports } from '../store/reports.ts';
import type { RouterRegistry } from './router-registry.ts';

export interface ReportWriter {
  /** Throws what the driver throws. */
  save(report: StoredReport): Promise<Saved>;
}

/** `unknown`: the router does not exist any more, or has another key by now. `ahead`: its cursor is beyond the log's end; nothing was stored. */
export type Saved = 'stored' | 'unknown' | 'ahead';

interface Waiting {
  readonly report: StoredReport;
  readonly resolve: (saved: Saved) => void;
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
      await store(takeBatch());
    }
    writing = false;
  }

  async function store(batch: readonly Waiting[]): Promise<void> {
    try {
      const saved = await saveReports(
        pool,
        batch.map(({ report }) => report),
      );
      const outcomeOf = ({ report }: Waiting): Saved => {
        if (!saved.routerUuids.has(report.routerUuid)) return 'unknown';
        return saved.ahead.has(report.routerUuid) ? 'ahead' : 'stored';
      };
      registry.stored(
        batch.filter((each) => outcomeOf(each) === 'stored').map(({ report }) => report),
        saved,
      );
      for (const each of batch) each.resolve(outcomeOf(each));
    } catch (error) {
      if (batch.length === 1 || isUnavailable(error)) for (const { reject } of batch) reject(error);
      else for (const each of batch) await store([each]);
    }
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
