/**
 * The marks that name a generation of the kernel's table, and how the one in force is read. A mark's first six digits
 * stand for what shapes the table besides its entries: another setting, another meaning of a kind, and an older table is
 * not adopted.
 */
import { createHash, randomBytes } from 'node:crypto';
import { markChainName, tableName } from '@levee/core/nftables/names.ts';
import type { NftDriver, NftKernel } from '../drivers/nft/port.ts';

const shapeDigits = 6;
const randomBytesOfMark = 5;

/** A source of marks for tables of this shape (any JSON value). */
export function createMarks(shape: unknown): { next(): string; fits(mark: string): boolean } {
  const prefix = createHash('sha256').update(JSON.stringify(shape)).digest('hex').slice(0, shapeDigits);
  return {
    next: () => prefix + randomBytes(randomBytesOfMark).toString('hex'),
    fits: (mark) => mark.startsWith(prefix),
  };
}

/** The mark of the table that the kernel has; undefined when there is none, or one of another making. */
export async function readMark(driver: NftDriver, kernel: NftKernel | undefined): Promise<string | undefined> {
  if (kernel) return kernel.comments(markChainName)[0];
  const listed = await driver.list(`chain inet ${tableName} ${markChainName}`);
  return listed.ok ? parseMarkListing(listed.output) : undefined;
}

export function parseMarkListing(listing: string): string | undefined {
  return /comment "([0-9a-f]{16})"/.exec(listing)?.[1];
}
