/**
 * From a host's name to its addresses. DNS is asked by c-ares, not by getaddrinfo: that one takes a thread a question, of
 * which the process has two for all of its lookups, so that two targets with silent name servers would hold up every other.
 * getaddrinfo is asked, one name at a time, only for what DNS does not know: the hosts file, search domains.
 */
import { lookup, Resolver } from 'node:dns/promises';

export type Resolved =
  | { readonly ok: true; readonly addresses: readonly string[] }
  /** `exists` false: it is certain that the name has no address. */
  | { readonly ok: false; readonly exists: boolean; readonly reason: string };

export type ResolveHost = (host: string) => Promise<Resolved>;

const TIMEOUT_MILLISECONDS = 2_000;
const TRIES = 2;

const absent = new Set(['ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA']);

let turn: Promise<unknown> = Promise.resolve();

export const resolveHost: ResolveHost = async (host) => {
  if (!host.includes('.')) return lookUp(host);
  const resolver = new Resolver({ timeout: TIMEOUT_MILLISECONDS, tries: TRIES });
  const results = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  if (addresses.length > 0) return { ok: true, addresses };
  const codes = results.map((result) => (result.status === 'rejected' ? codeOf(result.reason) : 'ENODATA'));
  const unclear = codes.find((code) => !absent.has(code));
  return unclear === undefined ? lookUp(host) : { ok: false, exists: true, reason: `DNS failed (${unclear})` };
};

function lookUp(host: string): Promise<Resolved> {
  const next = turn.then(async (): Promise<Resolved> => {
    try {
      const found = await lookup(host, { all: true, verbatim: true });
      return { ok: true, addresses: found.map(({ address }) => address) };
    } catch (error) {
      const code = codeOf(error);
      if (absent.has(code)) return { ok: false, exists: false, reason: 'the name has no address' };
      return { ok: false, exists: true, reason: `the name cannot be looked up (${code})` };
    }
  });
  turn = next;
  return next;
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? 'unknown');
}
