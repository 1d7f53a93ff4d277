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

/** `none`: the kernel has no such table; `unknown`: it could not be asked. */
type Seen = { readonly listing: string } | 'none' | 'unknown';

export function createTableKeeper(nft: NftDriver): TableKeeper {
  let text: string | undefined;
  let before: Seen = 'unknown';
  const look = async (): Promise<Seen> => {
    const listed = await nft.list(`table inet ${tunnelTable}`);
    if (listed.ok) return { listing: listed.output };
    return /No such file or directory/.test(listed.message) ? 'none' : 'unknown';
  };
  return {
    async put(wanted) {
      if (wanted === text) return undefined;
      if (wanted === noTable && (await look()) === 'none') {
        // The usual router: nothing is taken away from where nothing is.
        text = wanted;
        before = 'none';
        return undefined;
      }
      const result = await nft.apply(wanted);
      if (!result.ok) return result.message;
      text = wanted;
      before = await look();
      return undefined;
    },
    async hasDrifted() {
      if (text === undefined) return false;
      const now = await look();
      if (now === 'unknown' || isSame(now, before)) return false;
      text = undefined;
      // What was put up was never seen: it is put up once more, and nobody is blamed.
      return before !== 'unknown';
    },
  };
}

function isSame(a: Seen, b: Seen): boolean {
  return typeof a === 'object' && typeof b === 'object' ? a.listing === b.listing : a === b;
}
