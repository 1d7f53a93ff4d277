/**
 * Sends changes together as long as the server takes them, and finds those that it refuses by sending halves: servers
 * carry out a message whole or not at all, and do not say which change they mind.
 */
import type { Applied, PtrChange, Trouble } from './port.ts';

export type Sent =
  | { readonly ok: true }
  /** Something in it was refused; the reason is a sentence. */
  | { readonly ok: 'refused'; readonly reason: string }
  | Trouble;

/** From this many on, three of them are tried alone first: where all are refused, halving would ask for each. */
const manyChanges = 8;

export async function applyByHalves(
  changes: readonly PtrChange[],
  send: (changes: readonly PtrChange[]) => Promise<Sent>,
): Promise<Applied> {
  const refused = new Map<string, string>();
  const trouble = await work(changes, send, refused, true);
  return trouble ?? { ok: true, refused };
}

async function work(
  changes: readonly PtrChange[],
  send: (changes: readonly PtrChange[]) => Promise<Sent>,
  refused: Map<string, string>,
  whole: boolean,
): Promise<Trouble | undefined> {
  const sent = await send(changes);
  if (sent.ok === true) return undefined;
  if (sent.ok === false) return sent;
  const [first] = changes;
  if (first === undefined || changes.length === 1) {
    if (first !== undefined) refused.set(first.owner, sent.reason);
    return undefined;
  }
  const middle = changes.length >> 1;
  if (whole && changes.length >= manyChanges) {
    const alone = [first, changes[middle], changes.at(-1)].filter((change) => change !== undefined);
    let minded = 0;
    for (const change of alone) {
      const single = await send([change]);
      if (single.ok === false) return single;
      if (single.ok === 'refused') minded += 1;
    }
    if (minded === alone.length) {
      for (const { owner } of changes) refused.set(owner, sent.reason);
      return undefined;
    }
  }
  return (
    (await work(changes.slice(0, middle), send, refused, false)) ??
    (await work(changes.slice(middle), send, refused, false))
  );
}
