import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { compareRules, type Rule } from '../firewall/rule.ts';
import { prefixContains } from '../net/prefix.ts';
import { createCompiler } from './compiler.ts';
import { prefixChain, prefixKey } from './names.ts';
import { canMatch, endsEvaluation, ruleLine } from './rule-text.ts';
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

/** Straight from the meaning: every rule of every covering prefix, in order, up to the first that lets nothing past. */
function merged(rules: readonly Rule[], prefix: Rule['dst']): string[] {
  const all = rules.filter((rule) => prefixContains(rule.dst, prefix) && canMatch(rule, 'forward')).sort(compareRules);
  const last = all.findIndex(endsEvaluation);
  return (last < 0 ? all : all.slice(0, last + 1)).map((rule) => ruleLine(rule, 'forward'));
}

function holds(given: readonly Rule[]): void {
  const rules = [...new Map(given.map((rule) => [rule.uuid, rule])).values()];
  const text = createCompiler().replace(rules, '0'.repeat(16)).text;
  const chains = chainsOf(text);
  for (const { dst, disabled, packetType } of rules) {
    if (disabled || (packetType !== undefined && packetType !== 'host')) continue;
    const key = prefixKey(dst);
    const shared = new RegExp(`${key.split('_')[0] === '4' ? addressText(dst.value) : '-'} : goto (cs_\\S+)`).exec(
      text,
    )?.[1];
    const chain = chains.has(prefixChain('c', key)) ? prefixChain('c', key) : shared;
    if (chain !== undefined) assert.deepEqual(unfolded(chains, chain), merged(rules, dst), key);
    else
      assert.ok(
        rules.filter((rule) => prefixKey(rule.dst) === key).every((rule) => !canMatch(rule, 'forward')),
        key,
      );
  }
}

function addressText(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('\\.');
}

it('whatever the runs and jumps, a destination meets the rules of all covering prefixes in order', () => {
  fc.assert(fc.property(fc.array(arbitraryProfileRule(400), { minLength: 100, maxLength: 400 }), holds), {
    numRuns: 60,
  });
  fc.assert(fc.property(fc.array(arbitraryRule(60), { maxLength: 60 }), holds), { numRuns: 60 });
});
