/**
 * Exporters of flow telemetry: creates, changes, lists, removes them, and puts together what detectors tell of them. Owns the
 * columns; receives nothing.
 */
import type { ExporterSettings, ExporterStatus } from '@levee/contract/detector.ts';
import { samplingOf } from '../store/detector-settings.ts';
import { newUuid } from '../store/new-uuid.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { milliseconds } from './stored-row.ts';

export interface ExporterRow {
  readonly uuid: string;
  readonly name: string;
  /** Canonical. */
  readonly source: string;
  readonly sampling: ExporterSettings['sampling'];
  readonly interfaces: readonly number[] | null;
  readonly created_ms: number;
  readonly updated_ms: number;
}

/** `undefined` stays; null: all interfaces. */
export interface ExporterFields {
  readonly name?: string | undefined;
  readonly source?: string | undefined;
  readonly sampling?: ExporterSettings['sampling'] | undefined;
  readonly interfaces?: readonly number[] | null | undefined;
}

const columns = `e.uuid::text as uuid, e.name, host(e.source) as source, e.sampling, to_json(e.interfaces) as interfaces,
  ${milliseconds('e.created_at')} as created_ms, ${milliseconds('e.updated_at')} as updated_ms`;
const logged = `logged as (insert into change (kind, object_uuid) select 'exporter', uuid from e)`;

const createStatement = {
  name: 'exporter_create',
  text: `with e as (
      insert into exporter (uuid, name, source, sampling, interfaces) values ($1, $2, $3, $4, $5) returning *
    ), ${logged} select ${columns} from e`,
};
const changeStatement = {
  name: 'exporter_change',
  text: `with e as (
      update exporter set name = $2, source = $3, sampling = $4, interfaces = $5, updated_at = now() where uuid = $1
      returning *
    ), ${logged} select ${columns} from e`,
};
const deleteStatement = {
  name: 'exporter_delete',
  text: `with e as (delete from exporter where uuid = $1 returning *), ${logged} select ${columns} from e`,
};
const lockStatement = { name: 'exporter_lock', text: `select ${columns} from exporter e where uuid = $1 for update` };
const readStatement = { name: 'exporter_read', text: `select ${columns} from exporter e where uuid = $1` };
const listStatement = { name: 'exporter_list', text: `select ${columns} from exporter e order by e.sequence` };

type StoredExporter = Omit<ExporterRow, 'sampling'> & { readonly sampling: string };

async function rowsOf(
  executor: Executor,
  ...[statement, values]: Parameters<Executor['rows']>
): Promise<ExporterRow[]> {
  const rows = await executor.rows<StoredExporter>(statement, values);
  return rows.map((row) => ({ ...row, sampling: samplingOf(row.sampling) }));
}

/** Violates `exporter_name` or `exporter_source` where one has it already. */
export async function createExporter(
  executor: Executor,
  {
    name,
    source,
    sampling = 'auto',
    interfaces = null,
  }: ExporterFields & { readonly name: string; readonly source: string },
): Promise<ExporterRow> {
  const [row] = await rowsOf(executor, createStatement, [newUuid(), name, source, String(sampling), interfaces]);
  if (row === undefined) throw new Error('an exporter was not stored');
  return row;
}

export interface ChangedExporter {
  readonly before: ExporterRow;
  readonly after: ExporterRow;
}

/** In a transaction. */
export async function changeExporter(
  executor: Executor,
  uuid: string,
  fields: ExporterFields,
): Promise<Outcome<ChangedExporter>> {
  const [before] = await rowsOf(executor, lockStatement, [uuid]);
  if (before === undefined) return refuse('not_found');
  const { name, source, sampling } = { ...before, ...defined(fields) };
  const interfaces = fields.interfaces === undefined ? before.interfaces : fields.interfaces;
  const [after] = await rowsOf(executor, changeStatement, [uuid, name, source, String(sampling), interfaces]);
  if (after === undefined) throw new Error('a locked exporter is gone');
  return done({ before, after });
}

function defined({ name, source, sampling }: ExporterFields) {
  return {
    ...(name !== undefined && { name }),
    ...(source !== undefined && { source }),
    ...(sampling !== undefined && { sampling }),
  };
}

export async function deleteExporter(executor: Executor, uuid: string): Promise<Outcome<ExporterRow>> {
  const [row] = await rowsOf(executor, deleteStatement, [uuid]);
  return row === undefined ? refuse('not_found') : done(row);
}

export async function readExporter(executor: Executor, uuid: string): Promise<ExporterRow | undefined> {
  return (await rowsOf(executor, readStatement, [uuid]))[0];
}

export function listExporters(executor: Executor): Promise<ExporterRow[]> {
  return rowsOf(executor, listStatement, []);
}

/** What is heard of one address, of all detectors together. */
export interface LiveFigures {
  readonly source: string;
  readonly told_ms: number;
  readonly last_seen_ms: number;
  readonly protocols: readonly string[];
  readonly datagrams: number;
  readonly records: number;
  /** Undefined: no detector has told lately. */
  readonly datagrams_per_second: number | undefined;
  readonly records_per_second: number | undefined;
  readonly templates: number;
  readonly sampling_rate: number | undefined;
  readonly longest_flow_s: number | undefined;
  readonly dropped: Readonly<Record<string, number>>;
  readonly lost: number;
  readonly detectors: readonly string[];
  /** Those that tell of it: a detector that receives by itself by its name. */
  readonly collectors: readonly string[];
  /** Those of them that hear it at present: of what it sends to two, everything is counted twice. */
  readonly hearing: readonly string[];
}

/** A detector tells every ten seconds: rates of one that has not told for so long are nobody's. */
const FRESH_SECONDS = 30;

const figuresStatement = {
  name: 'exporter_figures',
  text: `select host(f.source) as source, ${milliseconds('f.told_at')} as told_ms, f.figures, d.name as detector,
      case when f.collector = d.uuid::text then d.name else f.collector end as collector,
      f.told_at > now() - make_interval(secs => ${FRESH_SECONDS}) as fresh
    from exporter_figures f join detector d on d.uuid = f.detector_uuid
    where $1::inet is null or f.source = $1 order by f.source, d.name, f.collector`,
};

interface FiguresRow {
  readonly source: string;
  readonly told_ms: number;
  readonly figures: ExporterStatus;
  readonly detector: string;
  readonly collector: string;
  readonly fresh: boolean;
}

/** By source; of one, or of all that anything was heard of. */
export async function readFigures(executor: Executor, source?: string): Promise<ReadonlyMap<string, LiveFigures>> {
  const rows = await executor.rows<FiguresRow>(figuresStatement, [source ?? null]);
  const all = new Map<string, LiveFigures>();
  for (const row of rows) all.set(row.source, together(all.get(row.source), row));
  return all;
}

function together(
  others: LiveFigures | undefined,
  { source, told_ms, figures, detector, collector, fresh }: FiguresRow,
): LiveFigures {
  const sum = (name: 'datagrams' | 'records' | 'templates' | 'lost') => (others?.[name] ?? 0) + figures[name];
  const rate = (name: 'datagrams_per_second' | 'records_per_second') =>
    fresh ? (others?.[name] ?? 0) + figures[name] : others?.[name];
  const dropped = { ...others?.dropped };
  for (const [reason, count] of Object.entries(figures.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count;
  const longest = Math.max(others?.longest_flow_s ?? 0, figures.longest_flow_s ?? 0);
  const isLatest = others === undefined || figures.last_seen_ms >= others.last_seen_ms;
  return {
    source,
    told_ms: Math.max(others?.told_ms ?? 0, told_ms),
    last_seen_ms: Math.max(others?.last_seen_ms ?? 0, figures.last_seen_ms),
    protocols: [...new Set([...(others?.protocols ?? []), ...figures.protocols])],
    datagrams: sum('datagrams'),
    records: sum('records'),
    datagrams_per_second: rate('datagrams_per_second'),
    records_per_second: rate('records_per_second'),
    templates: sum('templates'),
    sampling_rate: isLatest ? (figures.sampling_rate ?? others?.sampling_rate) : others.sampling_rate,
    longest_flow_s: longest > 0 ? longest : undefined,
    dropped,
    lost: sum('lost'),
    detectors: [...new Set([...(others?.detectors ?? []), detector])],
    collectors: [...(others?.collectors ?? []), collector],
    hearing: [...(others?.hearing ?? []), ...(fresh && figures.datagrams_per_second > 0 ? [collector] : [])],
  };
}
