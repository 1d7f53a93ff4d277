/**
 * Keeps a zone by dynamic updates (RFC 2136) over TCP, signed with TSIG where a key is given. An update that was taken is
 * asked back: a server passes over a PTR record in silence where the name is an alias (RFC 2136, 3.4.2.2), and a record
 * counts only when it is served.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseHostPort, type TsigKey } from '@levee/core/rdns/zone-settings.ts';
import { rcodes, types } from '../dns/protocol.ts';
import { createDnsConnection } from './dns-connection.ts';
import { octetsOfChange, readServerMessage, type ServerMessage, writeQuestion, writeUpdate } from './dns-message.ts';
import { applyByHalves, type Sent } from './halving.ts';
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
import { sign, tsigErrors, verify } from './tsig.ts';

export interface Rfc2136Options {
  readonly zone: string;
  /** `host:port`, canonical. */
  readonly server: string;
  readonly tsig?: TsigKey | undefined;
  readonly ttlSeconds: number;
  readonly nowMilliseconds?: () => number;
}

/** A message over TCP has 65 535 octets; some are the header's, the zone's and the signature's. */
const updateOctets = 60_000;
/** Questions under way at once: servers limit what one connection may have open. */
const questionsAtOnce = 64;
/** Knot serves an update some 10 ms after it said yes; what is not served after two seconds will not be. */
const servedAfterMilliseconds = [0, 5, 15, 40, 100, 240, 600, 1_000];

type Answer = { readonly ok: true; readonly message: ServerMessage } | Trouble;

export function createRfc2136({
  zone,
  server,
  tsig,
  ttlSeconds,
  nowMilliseconds = Date.now,
}: Rfc2136Options): ZoneServer {
  const place = parseHostPort(server, 53);
  if (place === undefined) throw new Error('a stored server is none');
  const connection = createDnsConnection(place);

  async function ask(write: (id: number) => Buffer): Promise<Answer> {
    let requestMac = Buffer.alloc(0);
    let received: Buffer;
    try {
      received = await connection.exchange((id) => {
        const plain = write(id);
        if (tsig === undefined) return plain;
        const signed = sign(plain, tsig, Math.floor(nowMilliseconds() / 1000));
        requestMac = Buffer.from(signed.mac);
        return signed.message;
      });
    } catch (error) {
      if (error instanceof ConnectionError) return away(error.message);
      throw error;
    }
    const message = readServerMessage(received);
    if (message === undefined) return away('its answer cannot be read');
    return tsig === undefined
      ? { ok: true, message }
      : judgeSignature(received, message, tsig, requestMac, nowMilliseconds());
  }

  async function update(changes: readonly PtrChange[]): Promise<Sent> {
    const answer = await ask((id) => writeUpdate(id, zone, ttlSeconds, changes));
    return answer.ok ? judgeUpdate(answer.message.rcode, tsig) : answer;
  }

  /** Undefined: the server does not say. */
  async function lookUp(owner: string): Promise<ServerMessage | Trouble | undefined> {
    const answer = await ask((id) => writeQuestion(id, owner, types.ptr));
    if (!answer.ok) return answer;
    const { rcode } = answer.message;
    return rcode === rcodes.noError || rcode === rcodes.nxDomain ? answer.message : undefined;
  }

  async function lookUpAll(owners: readonly string[]): Promise<Map<string, ServerMessage> | Trouble> {
    const found = new Map<string, ServerMessage>();
    for (let from = 0; from < owners.length; from += questionsAtOnce) {
      const some = owners.slice(from, from + questionsAtOnce);
      const answers = await Promise.all(some.map(lookUp));
      for (const [index, answer] of answers.entries()) {
        if (answer === undefined) continue;
        if ('ok' in answer) return answer;
        found.set(some[index] ?? '', answer);
      }
    }
    return found;
  }

  /** The owners whose record is not served, with the reason. */
  async function notServed(changes: readonly PtrChange[]): Promise<Map<string, string> | Trouble> {
    let open = changes.filter(({ target }) => target !== undefined);
    const reasons = new Map<string, string>();
    const aliases = new Map<string, string>();
    for (const milliseconds of servedAfterMilliseconds) {
      if (open.length === 0) break;
      if (milliseconds > 0) await delay(milliseconds);
      const found = await lookUpAll(open.map(({ owner }) => owner));
      if ('ok' in found) return found;
      reasons.clear();
      open = open.filter(({ owner, target }) => {
        const message = found.get(owner);
        // A primary that answers no questions is taken at its word.
        if (message === undefined || isServed(message, owner, target)) return false;
        const alias = aliasOf(message, owner);
        // That does not pass: the update was taken and thrown away.
        if (alias !== undefined) aliases.set(owner, aliasSentence(owner, alias, zone));
        else reasons.set(owner, otherwiseServed(message, owner, zone));
        return alias === undefined;
      });
    }
    return new Map([...reasons, ...aliases]);
  }

  return {
    async apply(changes, budget): Promise<Applied> {
      const refused = new Map<string, string>();
      const untried = new Set<string>();
      for (const batch of batchesOf(changes)) {
        const applied = await applyByHalves(batch, budget, update);
        if (!applied.ok) return applied;
        for (const owner of applied.untried) untried.add(owner);
        const taken = batch.filter(({ owner }) => !applied.refused.has(owner) && !applied.untried.has(owner));
        const missing = await notServed(taken);
        if ('ok' in missing) return missing;
        for (const [owner, reason] of [...applied.refused, ...missing]) refused.set(owner, reason);
      }
      return { ok: true, refused, untried };
    },
    async readBack(owners): Promise<ReadBack> {
      const found = await lookUpAll(owners);
      if ('ok' in found) return found;
      const targets = new Map([...found].map(([owner, message]) => [owner, pointersOf(message, owner)]));
      return { ok: true, targets };
    },
    async probe() {
      const answer = await ask((id) => writeQuestion(id, zone, types.soa));
      if (!answer.ok) return answer;
      const { rcode, authoritative } = answer.message;
      if (rcode === rcodes.noError && !authoritative) return refusedAll('it is not authoritative for the zone');
      // A primary may answer no questions and take updates all the same: only an update can tell.
      return rcode === rcodes.servFail ? away('it answers SERVFAIL') : { ok: true };
    },
    close: () => connection.close(),
  };
}

function* batchesOf(changes: readonly PtrChange[]): Generator<PtrChange[]> {
  let batch: PtrChange[] = [];
  let octets = 0;
  for (const change of changes) {
    const more = octetsOfChange(change);
    if (octets + more > updateOctets) {
      yield batch;
      batch = [];
      octets = 0;
    }
    batch.push(change);
    octets += more;
  }
  if (batch.length > 0) yield batch;
}

function pointersOf(message: ServerMessage, owner: string): string[] {
  return message.answers
    .filter((record) => record.type === types.ptr && record.owner === owner)
    .map((record) => record.target ?? '');
}

function isServed(message: ServerMessage, owner: string, target: string | undefined): boolean {
  const pointers = pointersOf(message, owner);
  return pointers.length === 1 && pointers[0] === target;
}

function aliasOf(message: ServerMessage, owner: string): string | undefined {
  return message.answers.find((record) => record.type === types.cname && record.owner === owner)?.target;
}

function aliasSentence(owner: string, alias: string, zone: string): string {
  return `In ${zone} the name ${owner} is an alias of ${alias}: the record belongs into the zone of that name (RFC 2317), which the operator must add.`;
}

function otherwiseServed(message: ServerMessage, owner: string, zone: string): string {
  const pointers = pointersOf(message, owner);
  const instead = pointers.length === 0 ? 'no PTR record' : pointers.join(', ');
  return `The DNS server of ${zone} took the record and serves ${instead} at ${owner}.`;
}

/** Errors about a key are not signed (RFC 8945, 5.3.2): they are believed as what they are, a reason to stop. */
function judgeSignature(
  received: Buffer,
  message: ServerMessage,
  key: TsigKey,
  requestMac: Buffer,
  now: number,
): Answer {
  const { tsig, rcode } = message;
  const name = `the key ${key.name}`;
  if (tsig === undefined) {
    if (rcode !== rcodes.noError && rcode !== rcodes.nxDomain) return { ok: true, message };
    return refusedAll(`its answer is not signed with ${name}`);
  }
  if (tsig.error === tsigErrors.badKey) return refusedAll(`it does not know ${name} with ${key.algorithm} (BADKEY)`);
  if (tsig.error === tsigErrors.badSig) return refusedAll(`it has another secret for ${name} (BADSIG)`);
  if (tsig.error === tsigErrors.badTrunc)
    return refusedAll(`it wants signatures of another length for ${name} (BADTRUNC)`);
  if (!verify(received, tsig, key, requestMac, Math.floor(now / 1000))) {
    return refusedAll(`the signature of its answer is not that of ${name}`);
  }
  if (tsig.error === tsigErrors.badTime) {
    const its = tsig.other.length === 6 ? tsig.other.readUIntBE(0, 6) : undefined;
    const apart = its === undefined ? '' : `, by ${Math.abs(its - Math.floor(now / 1000))} s`;
    return refusedAll(`its clock and this one are too far apart${apart} (BADTIME)`);
  }
  return { ok: true, message };
}

function judgeUpdate(rcode: number, key: TsigKey | undefined): Sent {
  const who = key === undefined ? 'from this address, without a key' : `with the key ${key.name}`;
  switch (rcode) {
    case rcodes.noError:
      return { ok: true };
    case rcodes.servFail:
      return away('it answers SERVFAIL');
    case rcodes.notImp:
      return refusedAll('it does not do dynamic updates (NOTIMP)');
    case rcodes.notAuth:
      return refusedAll('it is not authoritative for the zone, or does not accept the signature (NOTAUTH)');
    case rcodes.refused:
      return { ok: 'refused', reason: `The DNS server does not allow this update ${who} (REFUSED).` };
    case rcodes.notZone:
      return { ok: 'refused', reason: 'The DNS server says that the name lies outside the zone (NOTZONE).' };
    case rcodes.formErr:
      return { ok: 'refused', reason: 'The DNS server does not understand this update (FORMERR).' };
    default:
      return { ok: 'refused', reason: `The DNS server refuses this update (response code ${rcode}).` };
  }
}
