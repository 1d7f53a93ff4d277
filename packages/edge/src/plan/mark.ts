/**
 * The marks that name a generation of the kernel's table, and how the one in force is read. A mark's first four digits
 * stand for the settings that shape the table besides the rules: another setting, and an older table is not adopted.
 */
import { createHash, randomBytes } from 'node:crypto';
import { markSetName, tableName } from '@levee/core/nftables/names.ts';
import type { NftDriver, NftKernel } from '../drivers/nft/port.ts';

const settingsDigits = 4;

/** A source of marks for these settings (any JSON value). */
export function createMarks(settings: unknown): { next(): string; fits(mark: string): boolean } {
  const prefix = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, settingsDigits);
  return {
    next: () => prefix + randomBytes(6).toString('hex'),
    fits: (mark) => mark.startsWith(prefix),
  };
}

/** The mark of the table that the kernel has; undefined when there is none, or one of another making. */
export async function readMark(driver: NftDriver, kernel: NftKernel | undefined): Promise<string | undefined> {
  if (kernel) return (await kernel.elements(markSetName))?.[0]?.key;
  const listed = await driver.list(`set inet ${tableName} ${markSetName}`);
  return listed.ok ? parseMarkListing(listed.output) : undefined;
}

/** nft lists the mark's two words as IPv4 addresses. */
export function parseMarkListing(listing: string): string | undefined {
  const words = /elements = \{ ([0-9.]+) \. ([0-9.]+) \}/.exec(listing);
  if (words === null) return undefined;
  return words
    .slice(1)
    .flatMap((word) => word.split('.'))
    .map((octet) => Number(octet).toString(16).padStart(2, '0'))
    .join('');
}
