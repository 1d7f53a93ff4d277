import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rule } from '../firewall/rule.ts';
import { createCompiler } from './compiler.ts';

const base = { sequence: 1, priority: 1, action: 'drop', disabled: false } as const;
const dst4 = { family: 4, value: 0x0a000000n, length: 8 } as const;
const dst6 = { family: 6, value: 0x20010db8n << 96n, length: 32 } as const;

function compiled(rule: Omit<Rule, keyof typeof base | 'uuid'>): string {
  const uuid = '01900000-0000-7000-8000-000000000001';
  return createCompiler().replace([{ ...base, ...rule, uuid }], '0'.repeat(16)).text;
}

test('ports and flags are never read out of a later fragment’s data', () => {
  const looks: Partial<Rule>[] = [
    { sourcePorts: { start: 443, end: 65535 } },
    { destinationPorts: { start: 443, end: 65535 } },
    { tcpFlags: 2 },
  ];
  for (const look of looks) {
    assert.match(
      compiled({ dst: dst4, protocol: 'tcp', ...look }),
      /(sport|dport|@th).* ip frag-off & 0x1fff == 0 .*drop/,
    );
    const text = compiled({ dst: dst6, protocol: 'tcp', ...look });
    const mark = /frag frag-off != 0 meta mark set meta mark \| (\d+)/.exec(text)?.[1];
    assert.ok(mark, text);
    assert.match(text, new RegExp(`(sport|dport|@th).* meta mark & ${mark} == 0 .*drop`));
  }
});

test('a rule that looks at neither applies to every fragment', () => {
  assert.doesNotMatch(compiled({ dst: dst4, protocol: 'tcp' }), /ip frag-off/);
  assert.doesNotMatch(compiled({ dst: dst6, protocol: 'tcp' }), /meta mark & \d+ == 0/);
});
