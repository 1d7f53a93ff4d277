/** Owns what a collector's log says of addresses. Never logs what is in a datagram. */
import { addressOfListening, type RefusedAddress } from './receive-port.ts';

/** Of pino's logger, what is used of it. */
export interface CollectorLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

const sentences: Record<string, string> = {
  EADDRINUSE: 'another program listens on it',
  EADDRNOTAVAIL: 'this machine does not have the address',
  EACCES: 'ports below 1024 need a privilege',
  EINVAL: 'it is no IPv4 or IPv6 address',
};

export function refusalSentence({ address, code }: RefusedAddress): string {
  return `${addressOfListening(address)} cannot be listened on: ${sentences[code] ?? 'the system refuses it'} (${code})`;
}

/** What is new: refusals that were not there before, and those that are over. */
export function logRefused(log: CollectorLog, before: readonly RefusedAddress[], now: readonly RefusedAddress[]): void {
  const texts = new Set(before.map(refusalSentence));
  for (const refused of now) {
    if (!texts.delete(refusalSentence(refused))) log.warn({}, `${refusalSentence(refused)}; it is tried again`);
  }
  const still = new Set(now.map(({ address }) => addressOfListening(address)));
  for (const { address } of before) {
    const text = addressOfListening(address);
    if (!still.has(text)) log.info({ address: text }, 'listens on an address that was refused before');
  }
}
