import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { tcpFlagBits } from '../firewall/wire.ts';
import { type FlagExpression, formatFlagExpression, mostAlternatives, parseFlagExpression } from './flag-expression.ts';
import { flagKinds } from './flowrule.ts';

function expressionOf(text: string): FlagExpression {
  const parsed = parseFlagExpression(text, tcpFlagBits);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.sentence);
  return parsed.expression;
}

/** By the typed alternatives. */
const matches = (expression: FlagExpression, value: number) =>
  expression.some(({ set, unset }) => (value & set) === set && (value & unset) === 0);

/** By the text, literal by literal. */
const means = (text: string, value: number) =>
  text.split(',').some((alternative) =>
    alternative.split('&').every((literal) => {
      const name = literal.replace('!', '') as keyof typeof tcpFlagBits;
      return ((value & tcpFlagBits[name]) !== 0) !== literal.startsWith('!');
    }),
  );

const literals = fc
  .uniqueArray(fc.constantFrom(...Object.keys(tcpFlagBits)), { minLength: 1, maxLength: 5 })
  .chain((names) => fc.tuple(...names.map((name) => fc.boolean().map((not) => (not ? `!${name}` : name)))))
  .map((each) => each.join('&'));

test('a text matches exactly the flag octets that it says, and so does its canonical form, which is stable', () => {
  fc.assert(
    fc.property(fc.array(literals, { minLength: 1, maxLength: 6 }), (alternatives) => {
      const text = alternatives.join(',');
      const expression = expressionOf(text);
      const canonical = formatFlagExpression(expression, tcpFlagBits);
      for (let value = 0; value < 256; value++) {
        assert.equal(matches(expression, value), means(text, value), `${value}: ${text}`);
        assert.equal(means(canonical, value), means(text, value), `${value}: ${text} as ${canonical}`);
      }
      assert.equal(formatFlagExpression(expressionOf(canonical), tcpFlagBits), canonical);
      const reversed = expressionOf([...alternatives].reverse().join(','));
      assert.deepEqual(reversed, expression);
    }),
  );
});

test('flags come in the order of their bits, and an alternative that another covers is left out', () => {
  const cases: [string, string][] = [
    ['syn', 'syn'],
    ['ack&syn', 'syn&ack'],
    ['!ack&syn', 'syn&!ack'],
    ['syn&ack,syn', 'syn'],
    ['syn,syn', 'syn'],
    ['rst,fin', 'fin,rst'],
    ['syn&syn', 'syn'],
  ];
  for (const [text, canonical] of cases) assert.equal(formatFlagExpression(expressionOf(text), tcpFlagBits), canonical);
  const fragments = parseFlagExpression('is-fragment&!first-fragment', flagKinds.fragment);
  assert.ok(fragments.ok);
  assert.deepEqual(fragments.expression, [{ set: 2, unset: 4 }]);
});

test('what is no condition on flags is refused', () => {
  const wrong = ['', 'SYN', ' syn', 'syn&', '&syn', 'syn,', '!', '!!syn', 'syn&!syn', 'syn|ack', 'constructor', 'ns'];
  for (const text of [...wrong, Array.from({ length: mostAlternatives + 1 }, () => 'syn').join(',')]) {
    assert.equal(parseFlagExpression(text, tcpFlagBits).ok, false, text);
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => void parseFlagExpression(text, tcpFlagBits)),
  );
});
