/**
 * The kernel's table as one canonical text, for tests that compare tables: without counts, without the mark, and without what
 * packets wrote into filters' sets or what goes by itself there.
 */
import { execFileSync } from 'node:child_process';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { markChainName } from '@levee/core/nftables/names.ts';
import { understand } from '../plan/desired.ts';
import type { AgentEntry } from '../state/objects.ts';

export function canonicalTable(listing: string): string {
  const blocks = [...listing.matchAll(/^\t(chain|set|map) (\w+) \{\n([\s\S]*?)^\t\}$/gm)];
  return blocks
    .filter(([, , name]) => name !== markChainName)
    .map(([, kind, name, body = '']) => {
      const text = body.replace(/packets \d+ bytes \d+/g, '').replace(/\s+/g, ' ');
      if (/\bflags [a-z,]*timeout/.test(text)) return `${kind} ${name}: ${text.replace(/elements = \{ .* \}/, '')}`;
      const elements = /elements = \{ (.*) \}/.exec(text)?.[1]?.split(', ').sort().join(', ');
      return elements === undefined ? `${kind} ${name}: ${text}` : `${kind} ${name}: ${elements}`;
    })
    .sort()
    .join('\n');
}

/** In the namespace of this process; '' when there is no table. */
export function kernelTable(): string {
  try {
    return canonicalTable(
      execFileSync('nft', ['list', 'table', 'inet', 'levee'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
  } catch {
    return '';
  }
}

/** What a kernel of its own makes of these rules and filters, loaded at once. */
export function freshTable(wanted: Iterable<AgentEntry>): string {
  const readable = [...wanted].flatMap((wire) => {
    const understood = understand(wire);
    return understood.ok ? [understood.entry] : [];
  });
  const text = createCompiler().replace(readable, '0'.repeat(16)).text;
  const script = 'nft -f - && nft list table inet levee';
  return canonicalTable(execFileSync('unshare', ['-n', 'sh', '-c', script], { input: text, encoding: 'utf8' }));
}
