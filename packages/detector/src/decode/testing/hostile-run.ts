/**
 * Owns what hostile datagrams are made of, and what must hold whatever they are: nothing is thrown, every datagram is
 * accounted for, nothing depends on octets beyond its length, and what is held stays within its limits. Test code only.
 */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { DecodeCounts, FlowRecord } from '../../flow-record.ts';
import { createDecoder, type Decoder } from '../decoder.ts';
import type { DecoderLimits } from '../limits.ts';
import { u8 } from '../octets.ts';
import { reasons } from '../reasons.ts';
import { fixtures, readDatagrams } from './datagram-files.ts';
import { emptyCounts } from './decode-all.ts';

const exporters = 8;
/** Small, so that they are reached within a short run. */
const limits: DecoderLimits = {
  mostTemplates: 64,
  mostTemplatesPerExporter: 16,
  templateMilliseconds: 5_000,
  mostDomains: 48,
  mostDomainsPerExporter: 12,
  mostHeldOctets: 64 * 1024,
  mostHeldOctetsPerExporter: 16 * 1024,
  heldMilliseconds: 500,
};

const seeds = fixtures.flatMap((file) => readDatagrams(file).slice(0, 40));
const elements = [1, 2, 4, 6, 7, 8, 10, 11, 12, 21, 22, 27, 28, 32, 34, 48, 50, 88, 139, 149, 152, 153, 154, 155, 197];
const moreElements = [145, 161, 176, 178, 192, 224, 301, 302, 304, 305, 306, 309, 310, 311, 312, 313, 315, 410];

/** Numbers below `limit`, the same for the same seed (xorshift32). */
export function numbersFrom(seed: number): (limit: number) => number {
  let state = (seed * 2_654_435_761 + 1) >>> 0 || 1;
  return (limit) => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % limit;
  };
}

type Below = (limit: number) => number;

function pick<Item>(below: Below, items: readonly Item[]): Item {
  return items[below(items.length)] as Item;
}

/** A datagram of NetFlow v9 or IPFIX with templates and data that belong together more or less. */
function inventedMessage(below: Below): Buffer {
  const isIpfix = below(2) === 0;
  const parts: Buffer[] = [];
  const sets = 1 + below(6);
  for (let set = 0; set < sets; set += 1) {
    const id = 256 + below(6);
    if (below(2) === 0) parts.push(inventedTemplates(below, isIpfix, id));
    else parts.push(setOf(id, randomOctets(below, below(300))));
  }
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(isIpfix ? 16 : 20);
  header.writeUInt16BE(isIpfix ? 10 : 9, 0);
  header.writeUInt16BE(isIpfix ? header.length + body.length : sets, 2);
  header.writeUInt32BE(below(1000), isIpfix ? 8 : 12);
  header.writeUInt32BE(below(40), header.length - 4);
  return Buffer.concat([header, body]);
}

function inventedTemplates(below: Below, isIpfix: boolean, id: number): Buffer {
  const isOptions = below(3) === 0;
  const fields = 1 + below(below(20) === 0 ? 300 : 14);
  const isCostly = fields > 100 && below(2) === 0;
  const scopes = isOptions ? 1 + below(2) : 0;
  const specifiers: number[] = [];
  for (let field = 0; field < fields; field += 1) {
    const element = below(12) === 0 ? below(0x10000) : pick(below, [...elements, ...moreElements]);
    const odd = isCostly ? (field === 0 ? 0xffff : 0) : -1;
    const length =
      odd >= 0 ? odd : below(8) === 0 ? pick(below, [0, 0xffff, below(0x10000)]) : pick(below, [1, 2, 4, 4, 8, 16]);
    specifiers.push(element, length);
    if (isIpfix && element >= 0x8000) specifiers.push(0, 29305);
  }
  const head = isIpfix
    ? [id, fields, ...(isOptions ? [scopes] : [])]
    : isOptions
      ? [id, Math.min(scopes, fields) * 4, Math.max(fields - scopes, 0) * 4]
      : [id, fields];
  const words = [...head, ...specifiers];
  const content = Buffer.alloc(words.length * 2);
  words.forEach((word, index) => {
    content.writeUInt16BE(word, index * 2);
  });
  return setOf((isIpfix ? 2 : 0) + (isOptions ? 1 : 0), content);
}

function setOf(id: number, content: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(content.length + 4, 2);
  return Buffer.concat([header, content]);
}

function randomOctets(below: Below, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => below(256)));
}

/** Real datagrams with octets changed, numbers set to their ends, parts cut out, doubled, or taken from another one. */
function mutated(below: Below): Buffer {
  const source = below(4) === 0 ? inventedMessage(below) : pick(below, seeds);
  let datagram = Buffer.from(source);
  const changes = below(6);
  for (let change = 0; change < changes && datagram.length > 0; change += 1) {
    const at = below(below(2) === 0 ? Math.min(datagram.length, 80) : datagram.length);
    switch (below(6)) {
      case 0:
        datagram[at] = below(256);
        break;
      case 1:
        if (at + 2 <= datagram.length) datagram.writeUInt16BE(pick(below, [0, 1, 3, 4, 0x7fff, 0xffff]), at);
        break;
      case 2:
        if (at + 4 <= datagram.length) datagram.writeUInt32BE(pick(below, [0, 1, 0x7fffffff, 0xffffffff]), at);
        break;
      case 3:
        datagram = datagram.subarray(0, at);
        break;
      case 4:
        datagram = Buffer.concat([datagram.subarray(0, at), pick(below, seeds).subarray(below(60), below(200))]);
        break;
      default:
        datagram = Buffer.concat([datagram.subarray(0, at), datagram.subarray(below(at + 1))]).subarray(0, 65_507);
    }
  }
  return datagram;
}

/** A number that two readings have in common only if they read the same records. */
class Digest {
  records = 0;
  #sum = 0;
  readonly sink = (record: FlowRecord): void => {
    this.records += 1;
    const { header, headerStart, headerLength } = record;
    for (let at = headerStart; header !== undefined && at < headerStart + headerLength; at += 1) {
      this.#sum = (Math.imul(this.#sum, 31) + u8(header, at)) | 0;
    }
    this.#add(record.family + 8 * record.fragment + 64 * Number(record.isFlow) + 256 * headerLength);
    this.#add(record.source0 + record.source1 + record.source2 + record.source3);
    this.#add(record.destination0 + record.destination1 + record.destination2 + record.destination3);
    this.#add(record.sourcePort * 65_536 + record.destinationPort);
    this.#add(record.protocol * 65_536 + record.tcpFlags * 256 + record.ttl);
    this.#add(record.icmp);
    this.#add(record.packets);
    this.#add(record.bytes);
    this.#add(record.samplingRate);
    this.#add(record.durationMilliseconds);
    this.#add(record.inputInterface);
    this.#add(record.outputInterface);
  };

  get value(): number {
    return this.#sum;
  }

  #add(value: number): void {
    // NaN, and what is left of infinity, is not itself.
    if (!(value - value === 0)) throw new Error('a field is no finite number');
    this.#sum = (Math.imul(this.#sum, 31) + (value | 0) + ((value / 0x1_0000_0000) | 0)) | 0;
  }
}

interface Side {
  readonly decoder: Decoder;
  readonly counts: DecodeCounts[];
  readonly digest: Digest;
}

function side(): Side {
  return {
    decoder: createDecoder(limits),
    counts: Array.from({ length: exporters }, emptyCounts),
    digest: new Digest(),
  };
}

function accounted({ decoder, counts, digest }: Side): number {
  const { told } = decoder.holdings();
  let total = digest.records + told.templates + told.withdrawals + told.options + told.held;
  for (const { dropped } of counts) for (const reason in dropped) total += dropped[reason] as number;
  return total;
}

/** @returns how many records and drops there were, by reason */
export function hostileRun(seed: number, count: number): ReadonlyMap<string, number> {
  const below = numbersFrom(seed);
  // The second reads the same octets in the middle of others.
  const plain = side();
  const embedded = side();
  const room = Buffer.alloc(70_000);
  let nowMs = 0;
  const put = (times: number) => {
    for (let index = 0; index < times; index += 1) {
      const datagram = mutated(below);
      const exporter = below(exporters);
      nowMs += below(20);
      for (let at = 0; at < 64; at += 1) room[datagram.length + at] = below(256);
      datagram.copy(room);
      const before = accounted(plain);
      try {
        const { decoder, counts, digest } = plain;
        const own = counts[exporter] as DecodeCounts;
        decoder.decode(datagram, datagram.length, exporter, nowMs, own, digest.sink);
        const other = embedded.counts[exporter] as DecodeCounts;
        embedded.decoder.decode(room, datagram.length, exporter, nowMs, other, embedded.digest.sink);
        assert.ok(accounted(plain) > before, 'neither a record, nor a reason, nor anything that was told');
        assert.equal(embedded.digest.value, digest.value, 'octets beyond the length were read');
        assert.ok(other.records === own.records && other.lost === own.lost);
        assert.ok(Number.isSafeInteger(own.lost) && own.lost >= 0);
        if (index % 64 === 0) {
          assert.deepEqual(other, own);
          holdLimits(decoder);
        }
      } catch (error) {
        throw new Error(`seed ${seed}, datagram ${index}: ${datagram.toString('hex')}`, { cause: error });
      }
    }
  };
  put(Math.floor(count / 3));
  const memory = usedBytes();
  put(count - Math.floor(count / 3));
  const grown = usedBytes() - memory;
  assert.ok(grown < 2 * 1024 * 1024, `${count} datagrams left ${grown} octets behind`);
  return summary(plain);
}

function holdLimits(decoder: Decoder): void {
  const { templates, domains, heldOctets } = decoder.holdings();
  assert.ok(templates <= limits.mostTemplates, `${templates} templates`);
  assert.ok(domains <= limits.mostDomains, `${domains} domains`);
  assert.ok(heldOctets <= limits.mostHeldOctets && heldOctets >= 0, `${heldOctets} octets held`);
  for (let exporter = 0; exporter < exporters; exporter += 1) {
    assert.ok(decoder.templates(exporter) <= limits.mostTemplatesPerExporter);
  }
}

function summary({ counts, digest }: Side): ReadonlyMap<string, number> {
  const totals = new Map<string, number>([['records', digest.records]]);
  for (const { dropped } of counts) {
    for (const [reason, times] of Object.entries(dropped)) {
      assert.ok(reason in reasons, reason);
      totals.set(reason, (totals.get(reason) ?? 0) + times);
    }
  }
  return totals;
}

function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // What array buffers held is given back a collection after they are found dead.
  for (let round = 0; round < 3; round += 1) collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
