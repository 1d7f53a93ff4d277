import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { compareEntries, type Entry } from '../filter/entry.ts';
import type { Rule } from '../firewall/rule.ts';
import { prefixContains } from '../net/prefix.ts';
import { createCompiler } from './compiler.ts';
import { endsChain, entryLine, standsAt } from './entry-text.ts';
import { prefixChain, prefixKey } from './names.ts';
import { arbitraryFilter, arbitraryProfileFilter } from './testing/random-filters.ts';
import { arbitraryProfileRule, arbitraryRule } from './testing/random-rules.ts';

/** Whatever a chain's lines are after every jump to a run is replaced by the run's lines. */
function unfolded(chains: ReadonlyMap<string, readonly string[]>, name: string): string[] {
  return (chains.get(name) ?? []).flatMap((line) => {
    const run = /^jump (c\S+)$/.exec(line)?.[1];
    return run === undefined ? [line] : unfolded(chains, run);
  });
}

function chainsOf(text: string): Map<string, string[]> {
  const blocks = text.matchAll(/^chain (\S+) \{\n([^}]*)^\}/gm);
  return new Map([...blocks].map(([, name = '', body = '']) => [name, body.split('\n').filter(Boolean)]));
}

/**
 * Straight from the meaning: every rule of every covering prefix, in order, up to the first that lets nothing past;
 * behind them, if nothing ended it, every filter of every covering prefix.
 */
function merged(entries: readonly Entry[], prefix: Rule['dst']): string[] {
  const all = entries
    .filter((entry) => prefixContains(entry.dst, prefix) && standsAt(entry, 'forward'))
    .sort(compareEntries);
  const last = all.findIndex(endsChain);
  return (last < 0 ? all : all.slice(0, last + 1)).map((entry) => entryLine(entry, 'forward'));
}

function holds(given: readonly Entry[]): void {
  const entries = [...new Map(given.map((entry) => [entry.uuid, entry])).values()];
  const text = createCompiler().replace(entries, '0'.repeat(16)).text;
  const chains = chainsOf(text);
  for (const { dst } of entries.filter((entry) => standsAt(entry, 'forward'))) {
    const key = prefixKey(dst);
    const shared = new RegExp(`${key.split('_')[0] === '4' ? addressText(dst.value) : '-'} : goto (cs_\\S+)`).exec(
      text,
    )?.[1];
    const chain = chains.has(prefixChain('c', key)) ? prefixChain('c', key) : shared;
    assert.ok(chain !== undefined, key);
    assert.deepEqual(unfolded(chains, chain), merged(entries, dst), key);
  }
}

function addressText(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('\\.');
}

it('whatever the runs and jumps, a destination meets the rules, then the filters of all covering prefixes, in order', () => {
  const profile = fc.oneof(
    { weight: 3, arbitrary: arbitraryProfileRule(400) },
    { weight: 1, arbitrary: arbitraryProfileFilter(400) },
  );
  fc.assert(fc.property(fc.array(profile, { minLength: 100, maxLength: 400 }), holds), { numRuns: 60 });
  const any = fc.oneof(arbitraryRule(60), arbitraryFilter(60));
  fc.assert(fc.property(fc.array(any, { maxLength: 60 }), holds), { numRuns: 60 });
});
