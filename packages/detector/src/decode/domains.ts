/**
 * Owns what is remembered of exporters of NetFlow v9 and IPFIX: their observation domains, each with its templates, its sampling and
 * its sequence. Bounded: what has been silent longest makes room, of the exporter that asks for more; what is in use last.
 */
import type { DecodeCounts } from '../flow-record.ts';
import { type HeldSet, HeldSets } from './held-sets.ts';
import type { DecoderLimits } from './limits.ts';
import { countDropped } from './reasons.ts';
import { SamplingMemory } from './sampling.ts';
import { Sequence } from './sequence.ts';
import type { Template } from './template.ts';

/** A domain of so many datagrams, one of them not so long ago, gives its place only where all others are as busy. */
const BUSY_DATAGRAMS = 16;
const BUSY_MILLISECONDS = 10 * 60_000;

export class Domain {
  readonly exporter: ExporterDomains;
  readonly key: number;
  readonly templates = new Map<number, Template>();
  readonly sampling = new SamplingMemory();
  readonly sequence = new Sequence();
  datagrams = 0;
  usedMs = 0;
  held: Map<number, HeldSet[]> | undefined = undefined;

  constructor(exporter: ExporterDomains, key: number) {
    this.exporter = exporter;
    this.key = key;
  }
}

export class ExporterDomains {
  /** The one used longest ago first. */
  readonly domains = new Map<number, Domain>();
  /** The one defined longest ago first. */
  readonly templates = new Map<Template, Domain>();
  heldOctets = 0;
  /** The rate that was told last, whatever of; for domains that nothing was told of. */
  samplingRate = 0;
  last: Domain | undefined = undefined;
}

export class DomainMemory {
  readonly held: HeldSets;
  readonly #limits: DecoderLimits;
  readonly #templates = new Map<Template, Domain>();
  #domains = 0;

  constructor(limits: DecoderLimits) {
    this.#limits = limits;
    this.held = new HeldSets(limits);
  }

  get templates(): number {
    return this.#templates.size;
  }

  get domains(): number {
    return this.#domains;
  }

  /** `key`: the number that the exporter gave the domain, apart for NetFlow v9 and IPFIX. */
  domain(exporter: ExporterDomains, key: number, nowMs: number, counts: DecodeCounts): Domain {
    const domain = exporter.last?.key === key ? exporter.last : this.#newest(exporter, key, nowMs, counts);
    domain.datagrams += 1;
    domain.usedMs = nowMs;
    return domain;
  }

  #newest(exporter: ExporterDomains, key: number, nowMs: number, counts: DecodeCounts): Domain {
    const { domains } = exporter;
    let found = domains.get(key);
    if (found !== undefined) {
      domains.delete(key);
    } else {
      const { mostDomains, mostDomainsPerExporter } = this.#limits;
      if (domains.size >= mostDomainsPerExporter || this.#domains >= mostDomains) {
        const evicted = this.#dropDomain(leastNeeded(domains.values(), nowMs));
        for (let each = 0; each < evicted; each += 1) countDropped(counts, 'template_evicted');
      }
      found = new Domain(exporter, key);
      this.#domains += 1;
    }
    domains.set(key, found);
    exporter.last = found;
    return found;
  }

  /** A template that is still valid; undefined: none is known. */
  template(domain: Domain, id: number, nowMs: number): Template | undefined {
    const template = domain.templates.get(id);
    if (template === undefined) return undefined;
    if (nowMs - template.definedMs <= this.#limits.templateMilliseconds) return template;
    this.withdraw(domain, id);
    return undefined;
  }

  define(domain: Domain, template: Template, counts: DecodeCounts): void {
    this.withdraw(domain, template.id);
    const { mostTemplates, mostTemplatesPerExporter } = this.#limits;
    const own = domain.exporter.templates;
    if (own.size >= mostTemplatesPerExporter) this.#evict(own, counts);
    else if (this.#templates.size >= mostTemplates) this.#evict(own.size > 0 ? own : this.#templates, counts);
    domain.templates.set(template.id, template);
    own.set(template, domain);
    this.#templates.set(template, domain);
  }

  /** The template was told again: it is as good as new. */
  refresh(domain: Domain, template: Template, nowMs: number): void {
    template.definedMs = nowMs;
    for (const order of [domain.exporter.templates, this.#templates]) {
      order.delete(template);
      order.set(template, domain);
    }
  }

  withdraw(domain: Domain, id: number): void {
    const template = domain.templates.get(id);
    if (template === undefined) return;
    domain.templates.delete(id);
    domain.exporter.templates.delete(template);
    this.#templates.delete(template);
  }

  forget(exporter: ExporterDomains): void {
    for (const domain of exporter.domains.values()) this.#dropDomain(domain);
  }

  #evict(order: Map<Template, Domain>, counts: DecodeCounts): void {
    const oldest = order.entries().next().value;
    if (oldest === undefined) return;
    this.withdraw(oldest[1], oldest[0].id);
    countDropped(counts, 'template_evicted');
  }

  /** Returns how many templates went with it. */
  #dropDomain(domain: Domain | undefined): number {
    if (domain === undefined) return 0;
    const templates = domain.templates.size;
    for (const id of domain.templates.keys()) this.withdraw(domain, id);
    this.held.drop(domain);
    domain.exporter.domains.delete(domain.key);
    if (domain.exporter.last === domain) domain.exporter.last = undefined;
    this.#domains -= 1;
    return templates;
  }
}

/** Of those in the order of their use; undefined: there are none. */
function leastNeeded(domains: Iterable<Domain>, nowMs: number): Domain | undefined {
  let first: Domain | undefined;
  for (const domain of domains) {
    if (domain.datagrams < BUSY_DATAGRAMS || nowMs - domain.usedMs > BUSY_MILLISECONDS) return domain;
    first ??= domain;
  }
  return first;
}
