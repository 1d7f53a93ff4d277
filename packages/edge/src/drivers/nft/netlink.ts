/**
 * Reads nf_tables straight from the kernel over netlink sockets: generation, counters, notices of what others change.
 * Never writes. The sockets belong to the network namespace that the process was started in.
 *
 * Why not nft: a listing fetches the whole ruleset first (tens of milliseconds and more at 100 k rules), a filtered
 * dump of one chain takes microseconds.
 */
import koffi from 'koffi';
import {
  attribute,
  attributesOf,
  attributeText,
  commentOf,
  counterOf,
  counterOfExpression,
  messagesOf,
  messageType,
  request,
} from './netlink-message.ts';
import {
  addressFamilyNetlink,
  ask,
  dump,
  errno,
  openSocket,
  receive,
  receiveBytes,
  socketCalls,
} from './netlink-socket.ts';
import type { ChainCounter, ElementCounter, NftKernel } from './port.ts';
import { createRuleDumpReader } from './rule-dump.ts';

const levelNetlink = 270;
const addMembership = 1;
const dropMembership = 2;
const levelSocket = 1;
const receiveBufferForce = 33; // SO_RCVBUFFORCE
const groupNftables = 7; // NFNLGRP_NFTABLES
const dontWait = 0x40;
/** Room for the notices of a few full loads between two looks. */
const noticeBufferBytes = 64 << 20;
/** The event loop is held up no longer than this at a time. */
const sliceMilliseconds = 2;
/** After each slice of a gentle reading: a quarter of the time at most. */
const gentleRestMilliseconds = 6;

/** Throws when the platform has no such sockets or refuses them: the caller does without. */
export function openNetlink(table: string): NftKernel {
  const system = socketCalls();
  const requests = openSocket();
  const notices = openSocket();
  const setOption = (level: number, option: number, value: number): number => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    return system.setsockopt(notices, level, option, bytes, 4);
  };
  setOption(levelSocket, receiveBufferForce, noticeBufferBytes);
  // Without an address of its own a socket hears nothing of its groups, and no call says so.
  const anyAddress = Buffer.alloc(12);
  anyAddress.writeUInt16LE(addressFamilyNetlink);
  if (
    system.bind(notices, anyAddress, anyAddress.length) !== 0 ||
    setOption(levelNetlink, addMembership, groupNftables) !== 0
  ) {
    const reason = koffi.errno();
    system.close(requests);
    system.close(notices);
    throw new Error(`no notices from nf_tables (errno ${reason})`);
  }
  const scratch = Buffer.alloc(receiveBytes);

  const generation = (): number => {
    ask(requests, request(messageType.getGeneration, [], false));
    const datagram = receive(requests, scratch, 0);
    if (typeof datagram !== 'number') {
      for (const each of messagesOf(datagram)) {
        const id = each.kind === 'table' ? attribute(each.attributes, 1) : undefined;
        if (id) return id.readUInt32BE(0);
      }
    }
    throw new Error('the kernel did not say its generation');
  };

  let ownFrom: number | undefined;
  const ownGenerations: { after: number; upTo: number }[] = [];
  const pending: { generation: number; touched: boolean }[] = [];
  let touched = false;
  let lost = false;
  let deaf = false;

  const drain = (): void => {
    for (;;) {
      const datagram = receive(notices, scratch, dontWait);
      if (typeof datagram === 'number') {
        if (datagram === errno.again) return;
        if (datagram === errno.noBuffers) {
          lost = true;
          continue;
        }
        throw new Error(`netlink notices failed (errno ${datagram})`);
      }
      for (const each of messagesOf(datagram)) {
        if (each.kind !== 'table') continue;
        if (each.type === messageType.newGeneration) {
          const id = attribute(each.attributes, 1);
          if (id) pending.push({ generation: id.readUInt32BE(0), touched });
          touched = false;
        } else {
          const name = attribute(each.attributes, 1);
          if (name && attributeText(name) === table) touched = true;
        }
      }
    }
  };

  const ruleDump = (chain?: string): Buffer =>
    request(
      messageType.getRule,
      chain === undefined
        ? [[1, table]]
        : [
            [1, table],
            [2, chain],
          ],
      true,
    );

  const sliced = async <T>(messages: Generator<T, number | 'interrupted'>, take: (message: T) => void) => {
    let began = performance.now();
    for (;;) {
      const next = messages.next();
      if (next.done) return next.value;
      take(next.value);
      if (performance.now() - began > sliceMilliseconds) {
        await new Promise((resolve) => setImmediate(resolve));
        began = performance.now();
      }
    }
  };

  const isTableLoaded = (): boolean => {
    ask(requests, request(messageType.getTable, [[1, table]], false));
    const datagram = receive(requests, scratch, 0);
    if (typeof datagram === 'number') throw new Error(`netlink request failed (errno ${datagram})`);
    for (const each of messagesOf(datagram)) {
      if (each.kind === 'table') return true;
      if (each.kind === 'error' && each.error === errno.noEntry) return false;
      if (each.kind === 'error') throw new Error(`the kernel names no table (errno ${each.error})`);
    }
    throw new Error('the kernel did not say whether there is a table');
  };

  return {
    generation,
    isTableLoaded,
    chainCounters(chain) {
      const counters: ChainCounter[] = [];
      const reader = createRuleDumpReader({ counter: (_, packets, bytes) => counters.push({ packets, bytes }) });
      ask(requests, ruleDump(chain));
      for (;;) {
        const datagram = receive(requests, scratch, 0);
        if (typeof datagram === 'number') throw new Error(`netlink dump failed (errno ${datagram})`);
        if (reader.read(datagram)) return counters;
      }
    },
    comments(chain) {
      const found: string[] = [];
      for (const { attributes } of dump(ruleDump(chain))) {
        const data = attribute(attributes, 7);
        const comment = data && commentOf(data);
        if (comment !== undefined) found.push(comment);
      }
      return found;
    },
    async allChainCounters(pace) {
      const chains = new Map<string, ChainCounter[]>();
      let current: ChainCounter[] = [];
      let name: string | undefined;
      const reader = createRuleDumpReader({
        counter(chain, packets, bytes) {
          if (chain !== name) {
            name = chain;
            current = chains.get(chain) ?? [];
            chains.set(chain, current);
          }
          current.push({ packets, bytes });
        },
      });
      const rest = pace === 'gentle' ? gentleRestMilliseconds : 0;
      const fd = openSocket();
      try {
        const buffer = Buffer.alloc(receiveBytes);
        ask(fd, ruleDump());
        let began = performance.now();
        for (;;) {
          const datagram = receive(fd, buffer, 0);
          if (typeof datagram === 'number') throw new Error(`netlink dump failed (errno ${datagram})`);
          if (reader.read(datagram)) return chains;
          if (performance.now() - began < sliceMilliseconds) continue;
          await new Promise((resolve) => (rest > 0 ? setTimeout(resolve, rest) : setImmediate(resolve)));
          began = performance.now();
        }
      } finally {
        system.close(fd);
      }
    },
    async elements(set) {
      const found: ElementCounter[] = [];
      const ended = await sliced(
        dump(
          request(
            messageType.getSetElement,
            [
              [1, table],
              [2, set],
            ],
            true,
          ),
        ),
        (message) => {
          const list = attribute(message.attributes, 3);
          if (list) for (const element of attributesOf(list)) found.push(elementOf(element.value));
        },
      );
      return ended === errno.noEntry ? undefined : found;
    },
    beginOwn(whole) {
      drain();
      deaf = whole && setOption(levelNetlink, dropMembership, groupNftables) === 0;
      ownFrom = generation();
    },
    endOwn() {
      if (ownFrom === undefined) return;
      if (deaf) setOption(levelNetlink, addMembership, groupNftables);
      const upTo = generation();
      // More than our one transaction while nobody listened: whose table it was about is not known.
      if (deaf && (upTo - ownFrom) >>> 0 > 1) lost = true;
      deaf = false;
      if (upTo !== ownFrom) ownGenerations.push({ after: ownFrom, upTo });
      ownFrom = undefined;
      drain();
    },
    foreignChange() {
      if (ownFrom !== undefined) return 'none'; // a later look sees the bracket closed
      drain();
      // A bracket holds one transaction of ours: one that touched our table is it, a second one is somebody else's.
      const seen = new Map<object, number>();
      let changed = false;
      for (const notice of pending) {
        if (!notice.touched) continue;
        const own = ownGenerations.find(({ after, upTo }) => isWithin(notice.generation, after, upTo));
        const count = own ? (seen.get(own) ?? 0) + 1 : 0;
        if (own) seen.set(own, count);
        if (!own || count > 1) changed = true;
      }
      pending.length = 0;
      ownGenerations.length = 0;
      if (lost) {
        lost = false;
        return 'lost';
      }
      return changed ? 'changed' : 'none';
    },
    close() {
      system.close(requests);
      system.close(notices);
    },
  };
}

/** Generations are 32 bits wide and wrap. */
function isWithin(generation: number, after: number, upTo: number): boolean {
  return (
    (generation - after) >>> 0 !== 0 &&
    (upTo - generation) >>> 0 < 0x80000000 &&
    (generation - after) >>> 0 < 0x80000000
  );
}

function elementOf(element: Buffer): ElementCounter {
  let key = '';
  let chain: string | undefined;
  let counter: ChainCounter | undefined;
  for (const { type, value } of attributesOf(element)) {
    if (type === 1) key = attribute(value, 1)?.toString('hex') ?? '';
    else if (type === 2) {
      const verdict = attribute(value, 2);
      const name = verdict && attribute(verdict, 2);
      if (name) chain = attributeText(name);
    } else if (type === 7) counter = counterOfExpression(value) ?? counter;
    else if (type === 0x11) counter = counterOf(value) ?? counter;
  }
  return { key, chain, packets: counter?.packets ?? 0, bytes: counter?.bytes ?? 0 };
}
