/**
 * Names and marks of the router's tunnel devices. A device is known as ours by three things that agree: its name, made
 * of the tunnel's uuid, the uuid as its alias, and its group while it has no alias yet. Never looks at the kernel.
 */
import { createHash } from 'node:crypto';

/** Names are as long as a name can be (IFNAMSIZ less the final zero): no device that somebody names by hand is. */
const digits = 13;
const prefix = 'lv';
const namePattern = /^lv[0-9a-z]{13}$/;
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** For `iifname` and `oifname`: all of ours, and few others. */
export const deviceWildcard = `${prefix}*`;
/** "lv" in ASCII. The kernel takes a group when it makes a device, and an alias only afterwards. */
export const deviceGroup = 0x6c76;
/** How many names a tunnel may take: another than the first where that is somebody else's. */
export const nameAttempts = 4;

/**
 * 13 digits to the base of 36 of the uuid's hash, 67 bits: of a hundred thousand tunnels two have the same with a chance
 * of 1 in 3 · 10^10, and then one of them takes its next.
 */
export function deviceName(uuid: string, attempt: number): string {
  const hash = createHash('sha256').update(`${uuid} ${attempt}`).digest();
  const number = hash.readBigUInt64BE(0) * 256n + BigInt(hash[8] ?? 0);
  return prefix + number.toString(36).padStart(digits, '0').slice(-digits);
}

/** The tunnel whose device this is: undefined where it is not ours, 'unfinished' where it was made and not named further. */
export function ownerOf(name: string, alias: string | undefined, group: number): string | undefined {
  if (!namePattern.test(name)) return undefined;
  if (alias === undefined) return group === deviceGroup ? 'unfinished' : undefined;
  if (!uuidPattern.test(alias)) return undefined;
  for (let attempt = 0; attempt < nameAttempts; attempt++) if (deviceName(alias, attempt) === name) return alias;
  return undefined;
}
