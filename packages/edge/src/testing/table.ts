/** The kernel's table as one canonical text, without counts and without the mark; for tests that compare tables. */
import { execFileSync } from 'node:child_process';
import type { AgentRule } from '@levee/contract/agent.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { markSetName } from '@levee/core/nftables/names.ts';
import { understand } from '../plan/desired.ts';

export function canonicalTable(listing: string): string {
  const blocks = [...listing.matchAll(/^\t(chain|set|map) (\w+) \{\n([\s\S]*?)^\t\}$/gm)];
  return blocks
    .filter(([, , name]) => name !== markSetName)
    .map(([, kind, name, body = '']) => {
      const text = body.replace(/packets \d+ bytes \d+/g, '').replace(/\s+/g, ' ');
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

/** What a kernel of its own makes of these rules, loaded at once. */
export function freshTable(rules: Iterable<AgentRule>): string {
  const readable = [...rules].flatMap((wire) => {
    const understood = understand(wire);
    return understood.ok ? [understood.rule] : [];
  });
  const text = createCompiler().replace(readable, '0'.repeat(16)).text;
  const script = 'nft -f - && nft list table inet levee';
  return canonicalTable(execFileSync('unshare', ['-n', 'sh', '-c', script], { input: text, encoding: 'utf8' }));
}
