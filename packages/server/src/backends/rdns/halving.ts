/**
 * Sends changes together as long as the server takes them, and finds those that it refuses by sending halves: servers
 * carry out a message whole or not at all, and do not say which change they mind. What the budget leaves no message for
 * is untried, and never counts as refused: the rest is for another time.
 */
import type { Applied, Budget, PtrChange, Trouble } from './port.ts';

export type Sent =
  | { readonly ok: true }
  /** Something in it was refused; the reason is a sentence. */
  | { readonly ok: 'refused'; readonly reason: string }
  | Trouble;

interface Found {
  readonly refused: Map<string, string>;
  readonly untried: Set<string>;
}

/** From the front: what is untried is the end of `changes`. The first message is not of the budget. */
export async function applyByHalves(
  changes: readonly PtrChange[],
  budget: Budget,
  send: (changes: readonly PtrChange[]) => Promise<Sent>,
): Promise<Applied> {
  const found: Found = { refused: new Map(), untried: new Set() };
  const trouble = await work(changes, budget, send, found);
  return trouble ?? { ok: true, ...found };
}

async function work(
  changes: readonly PtrChange[],
  budget: Budget,
  send: (changes: readonly PtrChange[]) => Promise<Sent>,
  found: Found,
): Promise<Trouble | undefined> {
  const sent = await send(changes);
  if (sent.ok === true) return undefined;
  if (sent.ok === false) return sent;
  if (changes.length <= 1) {
    for (const { owner } of changes) found.refused.set(owner, sent.reason);
    return undefined;
  }
  const middle = changes.length >> 1;
  for (const half of [changes.slice(0, middle), changes.slice(middle)]) {
    if (budget.left <= 0) {
      for (const { owner } of half) found.untried.add(owner);
      continue;
    }
    budget.left -= 1;
    const trouble = await work(half, budget, send, found);
    if (trouble !== undefined) return trouble;
  }
  return undefined;
}
