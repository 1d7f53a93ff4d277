/**
 * Owns NetFlow v9 (RFC 3954) and IPFIX (RFC 7011) with PSAMP (RFC 5476): their headers, sets, and templates. Which octets
 * of a record mean what is the template's; what is remembered between datagrams is `DomainMemory`'s.
 */
import type { DecodeCounts, RecordSink } from '../flow-record.ts';
import type { Domain, DomainMemory, ExporterDomains } from './domains.ts';
import { u16, u32 } from './octets.ts';
import { countDropped, type Reason } from './reasons.ts';
import type { RecordReader } from './record-reader.ts';
import { type Field, MOST_FIELDS, SKIPPED, Template, VARIABLE } from './template.ts';

const ENTERPRISE = 0x8000;
/** The elements that the scopes of NetFlow v9 stand for: 2 is an interface, 5 a template. */
const v9Scopes: Readonly<Record<number, number>> = { 2: 10, 5: 145 };
/** Keeps the domains of IPFIX apart from those of NetFlow v9. */
const IPFIX_DOMAINS = 0x1_0000_0000;

/** What datagrams told beside records; only ever grows. */
export interface MessageCounts {
  templates: number;
  withdrawals: number;
  options: number;
  held: number;
}

export class MessageDecoder {
  readonly told: MessageCounts = { templates: 0, withdrawals: 0, options: 0, held: 0 };
  readonly #memory: DomainMemory;
  readonly #reader: RecordReader;
  #nowMs = 0;
  #isIpfix = false;

  constructor(memory: DomainMemory, reader: RecordReader) {
    this.#memory = memory;
    this.#reader = reader;
  }

  /** Returns why the rest of the datagram could not be read. */
  decode(
    data: Uint8Array,
    length: number,
    exporter: ExporterDomains,
    nowMs: number,
    counts: DecodeCounts,
    sink: RecordSink,
  ): Reason | undefined {
    const isIpfix = u16(data, 0) === 10;
    const header = isIpfix ? 16 : 20;
    if (length < header) return 'datagram_cut';
    this.#nowMs = nowMs;
    this.#isIpfix = isIpfix;
    const domain = this.#memory.domain(exporter, u32(data, header - 4) + (isIpfix ? IPFIX_DOMAINS : 0), nowMs, counts);
    let end = length;
    let isCut = false;
    if (isIpfix) {
      const announced = u16(data, 2);
      if (announced < header) return 'set_malformed';
      isCut = announced > length;
      if (announced < length) countDropped(counts, 'datagram_longer');
      if (announced < end) end = announced;
    }
    const failure = end === header ? 'datagram_empty' : this.#readSets(data, header, end, domain, counts, sink);
    const reason = isCut ? (failure ?? 'datagram_cut') : failure;
    const uptime = isIpfix ? -1 : u32(data, 4);
    // NetFlow v9 counts datagrams.
    const units = !isIpfix ? 1 : reason === undefined ? this.#units : -1;
    counts.lost += domain.sequence.note(u32(data, isIpfix ? 8 : 12), units, uptime, isIpfix ? this.#options : 0);
    return reason;
  }

  /** Records of the message that sequence numbers count; -1: not known. */
  #units = 0;
  #options = 0;

  #readSets(
    data: Uint8Array,
    start: number,
    end: number,
    domain: Domain,
    counts: DecodeCounts,
    sink: RecordSink,
  ): Reason | undefined {
    this.#units = 0;
    this.#options = 0;
    let at = start;
    while (end - at >= 4) {
      const id = u16(data, at);
      const setLength = u16(data, at + 2);
      if (setLength < 4) return 'set_malformed';
      const isCut = setLength > end - at;
      const setEnd = isCut ? end : at + setLength;
      if (id > 255) this.#readData(id, data, at + 4, setEnd, domain, counts, sink);
      else if (id === (this.#isIpfix ? 2 : 0)) this.#readTemplates(data, at + 4, setEnd, false, domain, counts, sink);
      else if (id === (this.#isIpfix ? 3 : 1)) this.#readTemplates(data, at + 4, setEnd, true, domain, counts, sink);
      else countDropped(counts, 'set_unknown');
      if (isCut) return 'datagram_cut';
      at = setEnd;
    }
    // Some exporters fill up the datagram's end.
    return at < end ? 'datagram_longer' : undefined;
  }

  #readData(
    id: number,
    data: Uint8Array,
    start: number,
    end: number,
    domain: Domain,
    counts: DecodeCounts,
    sink: RecordSink,
  ): void {
    const template = this.#memory.template(domain, id, this.#nowMs);
    if (template === undefined) {
      this.#units = -1;
      this.told.held += 1;
      this.#memory.held.hold(domain, id, data, start, end, this.#nowMs, counts);
      return;
    }
    const records = this.#readRecords(template, data, start, end, domain, 0, counts, sink);
    if (this.#units >= 0) this.#units += records;
    if (template.isOptions) this.#options += records;
  }

  /** Returns how many records there were, of whatever kind. `waitedMs`: how long the first ones waited for their template. */
  #readRecords(
    template: Template,
    data: Uint8Array,
    start: number,
    end: number,
    domain: Domain,
    waitedMs: number,
    counts: DecodeCounts,
    sink: RecordSink,
  ): number {
    const reader = this.#reader;
    const record = reader.record;
    const sampling = domain.sampling;
    const isVariable = template.isVariable;
    // Of fields without octets there can be any number in a datagram; of others never more than it has octets.
    let fieldsLeft = isVariable ? 2 * (end - start) + MOST_FIELDS : Number.POSITIVE_INFINITY;
    let length = template.recordLength;
    let records = 0;
    let at = start;
    while (end - at >= length) {
      if (isVariable) {
        fieldsLeft -= template.steps.length / 3;
        if (fieldsLeft < 0) {
          countDropped(counts, 'records_costly');
          this.#units = -1;
          return records;
        }
        const measured = reader.measure(template, data, at, end);
        if (measured < 0) break;
        length = measured;
      }
      reader.read(template, data, at);
      at += length;
      records += 1;
      if (template.isOptions) {
        this.#noteOptions(domain, counts);
        length = template.recordLength;
        continue;
      }
      const reason = reader.finishFlow(template, data);
      length = template.recordLength;
      if (reason !== undefined) {
        countDropped(counts, reason);
        continue;
      }
      let rate = template.hasOwnSampling ? reader.ownRate() : 0;
      if (rate < 0) {
        countDropped(counts, 'value_absurd');
        continue;
      }
      if (rate === 0) rate = template.samplingRate;
      if (rate === 0) {
        rate = sampling.isEmpty
          ? domain.exporter.samplingRate
          : sampling.rate(reader.selector, reader.selection, record.inputInterface);
      }
      record.samplingRate = rate;
      // What waited together comes at once; spread over the time that it waited it keeps its rate.
      if (record.durationMilliseconds < waitedMs) record.durationMilliseconds = waitedMs;
      counts.records += 1;
      sink(record);
    }
    // Sets are filled up to four or eight octets.
    if (end - at > 7 || records === 0) {
      countDropped(counts, 'record_cut');
      this.#units = -1;
    }
    return records;
  }

  #noteOptions(domain: Domain, counts: DecodeCounts): void {
    this.told.options += 1;
    const reader = this.#reader;
    const rate = reader.ownRate();
    if (rate < 0) {
      countDropped(counts, 'value_absurd');
      return;
    }
    const told = {
      rate,
      selector: reader.selector,
      selection: reader.selection,
      selectors: reader.selectors,
      inputInterface: reader.record.inputInterface,
      algorithm: reader.algorithm,
    };
    const exporter = domain.exporter;
    if (rate > 0 && reader.template > 0) {
      const template = domain.templates.get(reader.template);
      if (template !== undefined) template.samplingRate = rate;
      return;
    }
    if (rate > 0) exporter.samplingRate = rate;
    const key = reader.domain + (domain.key >= IPFIX_DOMAINS ? IPFIX_DOMAINS : 0);
    const meant = reader.domain > 0 ? exporter.domains.get(key) : domain;
    meant?.sampling.note(told);
  }

  #readTemplates(
    data: Uint8Array,
    start: number,
    end: number,
    isOptions: boolean,
    domain: Domain,
    counts: DecodeCounts,
    sink: RecordSink,
  ): void {
    const before = this.told.templates + this.told.withdrawals;
    let at = start;
    while (end - at >= 4) {
      const next = this.#readTemplate(data, at, end, isOptions, domain, counts, sink);
      if (next < 0) {
        countDropped(counts, 'template_malformed');
        return;
      }
      at = next;
    }
    if (this.told.templates + this.told.withdrawals === before) countDropped(counts, 'template_malformed');
  }

  /** Returns where the next one begins; -1 if this one cannot be. */
  #readTemplate(
    data: Uint8Array,
    start: number,
    end: number,
    isOptions: boolean,
    domain: Domain,
    counts: DecodeCounts,
    sink: RecordSink,
  ): number {
    const id = u16(data, start);
    const isIpfix = this.#isIpfix;
    // Zeros to the end of the set are what it was filled up with.
    if (id === 0 && isZero(data, start, end)) return end;
    if (isIpfix && u16(data, start + 2) === 0) return this.#withdraw(id, start, isOptions, domain);
    if (id < 256) return -1;
    let fieldCount = u16(data, start + 2);
    let scopeCount = 0;
    let at = start + 4;
    if (isOptions) {
      if (end - at < 2) return -1;
      scopeCount = u16(data, at);
      if (!isIpfix) {
        // Lengths in octets of the specifiers, first the scopes'.
        const optionOctets = scopeCount;
        const scopeOctets = fieldCount;
        if ((scopeOctets & 3) !== 0 || (optionOctets & 3) !== 0) return -1;
        scopeCount = scopeOctets >> 2;
        fieldCount = scopeCount + (optionOctets >> 2);
      }
      at += 2;
    }
    if (fieldCount === 0 || fieldCount > MOST_FIELDS || scopeCount > fieldCount) return -1;
    const specifiers = at;
    at = this.#skipSpecifiers(data, at, end, fieldCount);
    if (at < 0) return -1;

    const known = domain.templates.get(id);
    if (known !== undefined && known.isOptions === isOptions && isSame(known.specifiers, data, start, at)) {
      this.#memory.refresh(domain, known, this.#nowMs);
    } else {
      const fields = this.#readFields(data, specifiers, fieldCount, isIpfix ? 0 : scopeCount);
      if (!isIpfix && fields.some((field) => field.length === VARIABLE)) return -1;
      const length = fields.reduce((sum, field) => sum + (field.length === VARIABLE ? 1 : field.length), 0);
      if (length === 0 || length > 0xffff) return -1;
      const copy = new Uint8Array(data.subarray(start, at));
      this.#memory.define(domain, new Template(id, isOptions, fields, copy, this.#nowMs), counts);
    }
    this.told.templates += 1;
    if (domain.held !== undefined) this.#readHeld(id, domain, sink);
    return at;
  }

  #skipSpecifiers(data: Uint8Array, start: number, end: number, fieldCount: number): number {
    let at = start;
    for (let field = 0; field < fieldCount; field += 1) {
      if (end - at < 4) return -1;
      at += this.#isIpfix && (u16(data, at) & ENTERPRISE) !== 0 ? 8 : 4;
    }
    return at <= end ? at : -1;
  }

  #readFields(data: Uint8Array, start: number, fieldCount: number, v9ScopeCount: number): Field[] {
    const fields: Field[] = [];
    let at = start;
    for (let field = 0; field < fieldCount; field += 1) {
      const number = u16(data, at);
      const length = u16(data, at + 2);
      const isForeign = (number & ENTERPRISE) !== 0;
      const element = isForeign ? SKIPPED : field < v9ScopeCount ? (v9Scopes[number] ?? SKIPPED) : number;
      fields.push({ element, length });
      at += this.#isIpfix && isForeign ? 8 : 4;
    }
    return fields;
  }

  /** A template without fields takes back the one with its number; the set's own number, all of its kind (RFC 7011, 8.1). */
  #withdraw(id: number, start: number, isOptions: boolean, domain: Domain): number {
    if (id === (isOptions ? 3 : 2)) {
      for (const template of [...domain.templates.values()]) {
        if (template.isOptions === isOptions) this.#memory.withdraw(domain, template.id);
      }
    } else if (id > 255) {
      this.#memory.withdraw(domain, id);
    } else {
      return -1;
    }
    this.told.withdrawals += 1;
    return start + 4;
  }

  #readHeld(id: number, domain: Domain, sink: RecordSink): void {
    const template = domain.templates.get(id);
    const waiting = this.#memory.held.release(domain, id);
    const first = waiting[0];
    if (template === undefined || first === undefined) return;
    const waitedMs = Math.max(this.#nowMs - first.sinceMs, 0);
    const units = this.#units;
    for (const { data, counts } of waiting) {
      this.#readRecords(template, data, 0, data.length, domain, waitedMs, counts, sink);
    }
    this.#units = units;
  }
}

function isSame(known: Uint8Array, data: Uint8Array, start: number, end: number): boolean {
  if (known.length !== end - start) return false;
  for (let index = 0; index < known.length; index += 1) {
    if (known[index] !== data[start + index]) return false;
  }
  return true;
}

function isZero(data: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (data[at] !== 0) return false;
  return true;
}
