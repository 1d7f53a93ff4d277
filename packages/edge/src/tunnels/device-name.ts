/**
 * Names and marks of the router's tunnel devices. A device is known as ours by its name, made of the tunnel's uuid, and one
 * thing that agrees: the uuid as its alias, or our group, or a route of ours. Never looks at the kernel.
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

export interface Marks {
  readonly name: string;
  readonly alias: string | undefined;
  readonly group: number;
  /** Those of our protocol number. */
  readonly routes: readonly unknown[];
}

/** A device of ours that does not say of which tunnel: made and not named further, or somebody took its alias. */
export const unnamed = 'unnamed';

/** The tunnel whose device this is, or `unnamed`; undefined where nothing but the name says that it is ours. */
export function ownerOf({ name, alias, group, routes }: Marks): string | undefined {
  if (!isDeviceName(name)) return undefined;
  if (alias !== undefined && isNameOf(alias, name)) return alias;
  // What somebody has given another alias is theirs, unless it has our routes.
  return (alias === undefined && group === deviceGroup) || routes.length > 0 ? unnamed : undefined;
}

function isNameOf(uuid: string, name: string): boolean {
  if (!uuidPattern.test(uuid)) return false;
  for (let attempt = 0; attempt < nameAttempts; attempt++) if (deviceName(uuid, attempt) === name) return true;
  return false;
}

/** Whether it may be one of ours. */
export function isDeviceName(name: string): boolean {
  return namePattern.test(name);
}

/** All that the tunnel's device may be called, the first first. */
export function namesOf(uuid: string): readonly string[] {
  return Array.from({ length: nameAttempts }, (_, attempt) => deviceName(uuid, attempt));
}
