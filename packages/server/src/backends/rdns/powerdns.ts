/**
 * Keeps a zone by the HTTP API of PowerDNS Authoritative (doc.powerdns.com, "HTTP API"). Redirects are not followed: the
 * key is for one server. An answer's text is read up to a limit and passed on without what is no plain text.
 */
import { applyByHalves, type Sent } from './halving.ts';
import { createHttpClient, type HttpReply } from './http-client.ts';
import {
  type Applied,
  away,
  type PtrChange,
  type ReadBack,
  refusedAll,
  type Trouble,
  type ZoneServer,
} from './port.ts';
import { ConnectionError } from './server-reach.ts';

export interface PowerDnsOptions {
  readonly zone: string;
  /** Of the web server, without a final slash. */
  readonly server: string;
  readonly apiKey: string;
  /** Given: a zone that is not there is created with them. */
  readonly nameservers?: readonly string[] | undefined;
  readonly ttlSeconds: number;
}

const answerMilliseconds = 5_000;
/** A whole zone may be read at length. */
const zoneMilliseconds = 60_000;
/** Up to so many names are read one by one, more with the whole zone. */
const namesOneByOne = 50;

type Reply = { readonly ok: true; readonly status: number; readonly text: string } | Trouble;

interface RecordSet {
  readonly name: string;
  readonly type: string;
  readonly records: readonly { readonly content: string; readonly disabled?: boolean }[];
}

export function createPowerDns({ zone, server, apiKey, nameservers, ttlSeconds }: PowerDnsOptions): ZoneServer {
  const zonesUrl = `${server}/api/v1/servers/localhost/zones`;
  const zoneUrl = `${zonesUrl}/${zoneId(zone)}`;
  const client = createHttpClient(server);

  async function ask(method: string, url: string, body?: unknown, milliseconds = answerMilliseconds): Promise<Reply> {
    const headers = { 'x-api-key': apiKey, ...(body !== undefined && { 'content-type': 'application/json' }) };
    try {
      const text = body === undefined ? undefined : JSON.stringify(body);
      return judge(await client.ask({ method, url, headers, body: text, milliseconds }));
    } catch (error) {
      if (error instanceof ConnectionError) return away(error.message);
      throw error;
    }
  }

  /** 404: the zone is not there; it is made when name servers were given. */
  async function withZone(request: () => Promise<Reply>): Promise<Reply> {
    const reply = await request();
    if (!reply.ok || reply.status !== 404) return reply;
    if (nameservers === undefined) {
      return refusedAll(
        'it has no such zone; create it there, or give the zone name servers here and it will be created',
      );
    }
    const made = await ask('POST', zonesUrl, {
      name: `${zone}.`,
      kind: 'Native',
      nameservers: nameservers.map((name) => `${name}.`),
    });
    if (!made.ok) return made;
    // Somebody else may have made it meanwhile.
    if (made.status !== 201 && made.status !== 409)
      return refusedAll(`it does not create the zone: ${errorOf(made.text)}`);
    return request();
  }

  async function patch(changes: readonly PtrChange[]): Promise<Sent> {
    const body = { rrsets: changes.map((change) => recordSet(change, ttlSeconds)) };
    const reply = await withZone(() => ask('PATCH', zoneUrl, body, zoneMilliseconds));
    if (!reply.ok) return reply;
    if (reply.status >= 200 && reply.status < 300) return { ok: true };
    return { ok: 'refused', reason: `PowerDNS refuses the record (${reply.status}): ${errorOf(reply.text)}.` };
  }

  return {
    apply: (changes, budget): Promise<Applied> => applyByHalves(changes, budget, patch),
    async readBack(owners): Promise<ReadBack> {
      const targets = new Map<string, readonly string[]>();
      const wanted = new Set(owners);
      const queries =
        owners.length > namesOneByOne
          ? ['']
          : owners.map((owner) => `?rrset_name=${encodeURIComponent(`${owner}.`)}&rrset_type=PTR`);
      for (const owner of owners) targets.set(owner, []);
      for (const query of queries) {
        const reply = await withZone(() => ask('GET', zoneUrl + query, undefined, zoneMilliseconds));
        if (!reply.ok) return reply;
        if (reply.status !== 200)
          return refusedAll(`it does not show the zone (${reply.status}): ${errorOf(reply.text)}`);
        for (const { name, type, records } of recordSetsIn(reply.text)) {
          const owner = plain(name);
          if (type !== 'PTR' || !wanted.has(owner)) continue;
          targets.set(
            owner,
            records.filter((record) => record.disabled !== true).map((record) => plain(record.content)),
          );
        }
      }
      return { ok: true, targets };
    },
    async probe() {
      const reply = await withZone(() => ask('GET', `${zoneUrl}?rrsets=false`));
      if (!reply.ok || reply.status === 200) return reply.ok ? { ok: true } : reply;
      return refusedAll(`it does not show the zone (${reply.status}): ${errorOf(reply.text)}`);
    },
    close: () => client.close(),
  };
}

/** As PowerDNS writes ids: with a final dot, and `=XX` for what is no letter, digit, dot or dash. */
function zoneId(zone: string): string {
  const written = (character: string) => `=${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  return `${zone.replaceAll(/[^A-Za-z0-9.-]/g, written)}.`;
}

function recordSet({ owner, target }: PtrChange, ttlSeconds: number): object {
  const set = { name: `${owner}.`, type: 'PTR' };
  if (target === undefined) return { ...set, changetype: 'DELETE' };
  return { ...set, changetype: 'REPLACE', ttl: ttlSeconds, records: [{ content: `${target}.`, disabled: false }] };
}

function plain(name: string): string {
  return (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
}

function judge({ status, text }: HttpReply): Reply {
  if (status === 401 || status === 403) return refusedAll('it does not accept the API key');
  if (status >= 500) return away(`it answers ${status}: ${errorOf(text)}`);
  if (status >= 300 && status < 400)
    return refusedAll(`it answers with a redirect (${status}): is the server's URL right?`);
  return { ok: true, status, text };
}

/** What PowerDNS says was wrong, in a line. */
function errorOf(text: string): string {
  let said: unknown;
  try {
    said = (JSON.parse(text) as { error?: unknown } | null)?.error;
  } catch {
    said = undefined;
  }
  if (typeof said !== 'string' || said === '') return 'it does not say why';
  return said
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .slice(0, 200)
    .replace(/\.$/, '');
}

function recordSetsIn(text: string): RecordSet[] {
  try {
    const sets = (JSON.parse(text) as { rrsets?: unknown }).rrsets;
    return Array.isArray(sets) ? (sets as RecordSet[]) : [];
  } catch {
    return [];
  }
}
