/**
 * Writes a whole zone as the messages of a transfer (RFC 5936; RFC 1995, 4 allows the same for IXFR), one at a time, of
 * one moment, however long the reader takes. Decides nothing about who may have it.
 */
import { ednsOctets, MessageWriter } from './message-writer.ts';
import { ednsUdpBytes, flags, rcodes, types } from './protocol.ts';
import type { Query, Question } from './query.ts';
import { recordsOf, type ServedZone } from './served-zones.ts';
import type { RecordData, ZoneRecord, ZoneSettings } from './zone-source.ts';

/** As far as compression reaches. */
const messageBytes = 16 * 1024;

/** The zone as it is when this is called. Each message is complete, without the length in front that TCP wants. */
export function transferMessages(query: Query, question: Question, zone: ServedZone): Iterable<Buffer> {
  return messages(query, question, zone.settings, recordsOf(zone));
}

function* messages(
  query: Query,
  question: Question,
  zone: ZoneSettings,
  records: Iterable<ZoneRecord>,
): Generator<Buffer> {
  const writer = new MessageWriter();
  const begin = () => {
    const word = flags.response | flags.authoritative | (query.recursionDesired ? flags.recursionDesired : 0);
    writer.start(Buffer.alloc(messageBytes), messageBytes, query.id, word, question);
    if (query.edns !== undefined) writer.reserve(ednsOctets);
  };
  const end = (): Buffer => {
    if (query.edns !== undefined) writer.edns(query.edns, ednsUdpBytes, rcodes.noError);
    return writer.finish();
  };
  begin();
  for (const write of recordWriters(writer, zone, records)) {
    if (write()) continue;
    yield end();
    begin();
    // One record always fits an empty message: three names and a question are less than 2 KiB.
    if (!write()) throw new Error(`a record of zone ${zone.name} fits no message`);
  }
  yield end();
}

/** The records in the order of a transfer: it begins and ends with the SOA. */
function* recordWriters(
  writer: MessageWriter,
  zone: ZoneSettings,
  records: Iterable<ZoneRecord>,
): Generator<() => boolean> {
  const { name, ttlSeconds, nameservers } = zone;
  const soa = () => writer.startOfAuthority('answer', name, ttlSeconds, zone);
  yield soa;
  for (const server of nameservers) yield () => writer.name('answer', name, types.ns, ttlSeconds, server);
  for (const [owner, data] of records) {
    for (const { type, target } of namesIn(data)) yield () => writer.name('answer', owner, type, ttlSeconds, target);
  }
  yield soa;
}

function namesIn(data: RecordData): readonly { readonly type: number; readonly target: string }[] {
  if (typeof data === 'string') return [{ type: types.ptr, target: data }];
  if ('alias' in data) return [{ type: types.cname, target: data.alias }];
  return data.nameservers.map((target) => ({ type: types.ns, target }));
}
