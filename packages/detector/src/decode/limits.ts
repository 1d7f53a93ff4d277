/**
 * Owns how much a decoder may come to hold, whatever is sent to it. Each limit is for all exporters together or, where
 * named so, for one of them.
 */
export interface DecoderLimits {
  readonly mostTemplates: number;
  readonly mostTemplatesPerExporter: number;
  /** A template that was not repeated for so long is none any more. */
  readonly templateMilliseconds: number;
  readonly mostDomains: number;
  readonly mostDomainsPerExporter: number;
  /** Sets of data that wait for their template, with what it takes to keep them. */
  readonly mostHeldOctets: number;
  readonly mostHeldOctetsPerExporter: number;
  readonly heldMilliseconds: number;
}

export const defaultLimits: DecoderLimits = {
  mostTemplates: 8192,
  mostTemplatesPerExporter: 1024,
  // Routers repeat theirs every half hour at the slowest; three times that, as RFC 7011, 8.4 advises.
  templateMilliseconds: 90 * 60_000,
  mostDomains: 8192,
  mostDomainsPerExporter: 256,
  mostHeldOctets: 8 * 1024 * 1024,
  mostHeldOctetsPerExporter: 512 * 1024,
  heldMilliseconds: 30_000,
};
