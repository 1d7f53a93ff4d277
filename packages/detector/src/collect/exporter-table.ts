/**
 * Owns whose datagrams are read: exporters by their source address, as they are configured, and those on this machine. Anyone can send
 * a datagram with any source: unknown ones are counted, a thousand of them each by itself, and never decoded. Of these the one that
 * has been silent longest gives way, once it has been so for a minute: a flood of forged ones takes their places no faster than that.
 */
import type { ExporterSettings, ExporterStatus } from '@levee/contract/detector.ts';
import { familyBits } from '@levee/core/net/prefix.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { addressText, type Words, wordsOf } from '../aggregate/address-words.ts';
import { KeyTable } from '../aggregate/key-table.ts';
import { Exporter, LOCAL_EXPORTER, UnknownSource } from './exporter.ts';

export const MOST_UNKNOWN = 1_000;
/** 127.0.0.0/8 is large as well. */
const mostLocal = 64;
const silentMilliseconds = 60_000;
const mostExporters = 1 << 14;

export class ExporterTable {
  /** Datagrams of unknown sources beyond those that are told one by one. */
  otherUnknownDatagrams = 0;
  #keys = new KeyTable(mostExporters, () => undefined);
  #sources: (Exporter | UnknownSource)[] = [];
  readonly #byNumber: (Exporter | undefined)[] = [];
  readonly #forget: (number: number) => void;
  #unknown = 0;
  #local = 0;
  /** When an unknown source may next be silent for long enough, and when that was found out. */
  #silentFromMs = 0;
  #lookedAtMs = 0;

  /** `forget`: an exporter with this number is no more, another may get it. */
  constructor(forget: (number: number) => void) {
    this.#forget = forget;
  }

  /** Which exporter sent a datagram, which is counted if none did. */
  exporterOf(family: 4 | 6, a: number, b: number, c: number, d: number, nowMs: number): Exporter | undefined {
    const row = this.#keys.find(a, b, c, d, family);
    const source = row >= 0 ? this.#sources[row] : this.#meet(family, a, b, c, d, nowMs);
    if (source === undefined) {
      this.otherUnknownDatagrams++;
      return undefined;
    }
    source.lastSeenMs = nowMs;
    if (source instanceof Exporter) return source;
    source.datagrams++;
    return undefined;
  }

  /** Whose records are told by this number; what is no more has no name. */
  nameOf(number: number): string {
    return this.#byNumber[number]?.name ?? '';
  }

  /** Exporters keep their counts as long as uuid and source stay. Answers with the sources that are no address. */
  configure(settings: readonly ExporterSettings[]): string[] {
    const before = this.#sources.filter((source) => source instanceof Exporter);
    const unknown = this.#sources.filter((source) => source instanceof UnknownSource);
    const kept = new Set<Exporter>();
    const unreadable: string[] = [];
    this.#keys = new KeyTable(mostExporters, () => undefined);
    this.#sources = [];
    for (const each of settings) {
      const parsed = parsePrefix(each.source);
      if (!parsed.ok || parsed.prefix.length !== familyBits(parsed.prefix.family)) {
        unreadable.push(each.source);
        continue;
      }
      const source = addressText(parsed.prefix.family, ...wordsOf(parsed.prefix));
      const known = before.find((other) => other.name === each.uuid && other.source === source);
      const exporter = known ?? new Exporter(this.#freeNumber(), source, each.uuid);
      if (!this.#put(parsed.prefix.family, wordsOf(parsed.prefix), exporter)) continue;
      this.#byNumber[exporter.number] = exporter;
      exporter.configure(each);
      kept.add(exporter);
    }
    this.#local = 0;
    this.#unknown = 0;
    for (const other of [...before.filter((each) => each.name === LOCAL_EXPORTER), ...unknown]) {
      const parsed = parsePrefix(other.source);
      if (!parsed.ok || !this.#put(parsed.prefix.family, wordsOf(parsed.prefix), other)) continue;
      if (other instanceof UnknownSource) this.#unknown++;
      else {
        this.#local++;
        kept.add(other);
      }
    }
    for (const exporter of before) {
      if (kept.has(exporter)) continue;
      this.#byNumber[exporter.number] = undefined;
      this.#forget(exporter.number);
    }
    return unreadable;
  }

  /** To be called once a second. */
  second(): void {
    for (const source of this.#sources) source.second();
  }

  /** Those that have sent something, unknown ones last. `templates`: by number. */
  status(templates: (number: number) => number): ExporterStatus[] {
    const told: ExporterStatus[] = [];
    const unknown: ExporterStatus[] = [];
    for (const source of this.#sources) {
      if (source.lastSeenMs === 0) continue;
      if (source instanceof Exporter) told.push(source.status(templates(source.number)));
      else unknown.push(source.status());
    }
    return [...told, ...unknown];
  }

  #meet(
    family: 4 | 6,
    a: number,
    b: number,
    c: number,
    d: number,
    nowMs: number,
  ): Exporter | UnknownSource | undefined {
    const isLocal = family === 4 ? a >>> 24 === 127 : a === 0 && b === 0 && c === 0 && d === 1;
    const text = addressText(family, a, b, c, d);
    if (isLocal) {
      if (this.#local === mostLocal) return undefined;
      const exporter = new Exporter(this.#freeNumber(), text, LOCAL_EXPORTER);
      if (!this.#put(family, [a, b, c, d], exporter)) return undefined;
      this.#byNumber[exporter.number] = exporter;
      this.#local++;
      return exporter;
    }
    const source = new UnknownSource(text);
    if (this.#unknown === MOST_UNKNOWN) {
      const row = this.#silentRow(nowMs);
      if (row < 0) return undefined;
      this.otherUnknownDatagrams += (this.#sources[row] as UnknownSource).datagrams;
      this.#keys.replace(row, a, b, c, d, family);
      this.#sources[row] = source;
      return source;
    }
    if (!this.#put(family, [a, b, c, d], source)) return undefined;
    this.#unknown++;
    return source;
  }

  /** Of the unknown source that has been silent longest, and long enough; -1: none has. Looks at all of them once a minute at most, or for one that is found. */
  #silentRow(nowMs: number): number {
    // A clock that was set back says nothing of silence.
    if (nowMs < this.#silentFromMs && nowMs >= this.#lookedAtMs) return -1;
    let found = -1;
    let oldestMs = Number.POSITIVE_INFINITY;
    for (const [row, source] of this.#sources.entries()) {
      if (source instanceof UnknownSource && source.lastSeenMs < oldestMs) {
        oldestMs = source.lastSeenMs;
        found = row;
      }
    }
    if (nowMs - oldestMs >= silentMilliseconds) return found;
    this.#silentFromMs = Math.min(oldestMs, nowMs) + silentMilliseconds;
    this.#lookedAtMs = nowMs;
    return -1;
  }

  #put(family: 4 | 6, [a, b, c, d]: Words, source: Exporter | UnknownSource): boolean {
    if (this.#keys.find(a, b, c, d, family) >= 0) return false;
    const row = this.#keys.add(a, b, c, d, family);
    if (row < 0) return false;
    this.#sources[row] = source;
    return true;
  }

  #freeNumber(): number {
    const free = this.#byNumber.indexOf(undefined);
    return free < 0 ? this.#byNumber.length : free;
  }
}
