/** A rule for a test from the fields that matter to it. Never used outside tests. */
import type { Rule } from '../../firewall/rule.ts';
import { prefixFromTrusted } from '../../net/prefix-text.ts';
import { ruleUuid } from './random-rules.ts';

/** `number` gives uuid and creation order. */
export function testRule(number: number, dst: string, fields: Partial<Rule> = {}): Rule {
  return {
    uuid: ruleUuid(number),
    sequence: number,
    priority: 1000,
    dst: prefixFromTrusted(dst),
    protocol: 'any',
    action: 'drop',
    disabled: false,
    ...fields,
  };
}
