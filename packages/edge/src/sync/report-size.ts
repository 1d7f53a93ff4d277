/**
 * Keeps a report below what the control plane takes in one body (16 MiB), for any number of rules: hits are sent in
 * pages, and the reasons of very many refused rules are shortened. Never leaves a refused rule out: one that is not
 * named is taken to be in force.
 */
import type { AgentFailure, AgentHit } from '@levee/contract/agent.ts';

/** About 200 bytes each, so 2 MiB. */
export const hitsPerReport = 10_000;
const failuresBytes = 12 * 1024 * 1024;
/** A failure without its reason, with commas and quotes. */
const frameBytes = 64;

/** Takes the next page out of `gathered`. */
export function takeHits(gathered: Map<string, AgentHit>): AgentHit[] {
  const page: AgentHit[] = [];
  for (const [uuid, hit] of gathered) {
    if (page.length === hitsPerReport) break;
    page.push(hit);
    gathered.delete(uuid);
  }
  return page;
}

/** The same list when it is small enough; else the same rules, each with the beginning of its reason. */
export function fitFailures(failures: AgentFailure[]): AgentFailure[] {
  let bytes = 0;
  for (const { reason } of failures) bytes += frameBytes + bytesOf(reason);
  if (bytes <= failuresBytes) return failures;
  const each = Math.max(0, Math.floor(failuresBytes / failures.length) - frameBytes);
  return failures.map(({ uuid, reason }) => ({ uuid, reason: beginning(reason, each) }));
}

function bytesOf(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** As JSON text no longer than so many bytes: a character may take six of them there. */
function beginning(text: string, bytes: number): string {
  let cut = text.slice(0, bytes);
  while (bytesOf(cut) > bytes)
    cut = cut.slice(0, Math.min(cut.length - 1, Math.floor((cut.length * bytes) / bytesOf(cut))));
  return cut;
}
