/**
 * Keeps the table `levee_tunnel` in the kernel: puts it up when it is to be another, and notices that it is no longer what
 * was put up. Owns the comparison: the listing taken after our own transaction against a later one.
 */
import type { NftDriver } from '../drivers/nft/port.ts';
import { tableText, tunnelTable } from './tunnel-table.ts';

export interface TableKeeper {
  /** One transaction, and none when the kernel has that text already. Undefined, or nft's own words: then nothing changed. */
  put(text: string): Promise<string | undefined>;
  /** Whether somebody else changed it since it was put up; it is put up anew by the next `put`. */
  hasDrifted(): Promise<boolean>;
}

const noTable = tableText(new Map());

export function createTableKeeper(nft: NftDriver): TableKeeper {
  let text: string | undefined;
  let listing: string | undefined;
  /** What the kernel has; undefined: no table. */
  const list = async (): Promise<string | undefined> => {
    const listed = await nft.list(`table inet ${tunnelTable}`);
    return listed.ok ? listed.output : undefined;
  };
  return {
    async put(wanted) {
      if (wanted === text) return undefined;
      if (wanted === noTable && (await list()) === undefined) {
        // The usual router: nothing is taken away from where nothing is.
        text = wanted;
        listing = undefined;
        return undefined;
      }
      const result = await nft.apply(wanted);
      if (!result.ok) return result.message;
      text = wanted;
      listing = await list();
      return undefined;
    },
    async hasDrifted() {
      if (text === undefined || (await list()) === listing) return false;
      text = undefined;
      return true;
    },
  };
}
