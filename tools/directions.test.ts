/** Guarantees of the direction check: each rule is broken once on purpose, and the real tree keeps them all. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readTree } from './check-directions.ts';
import { findViolations, type Tree } from './directions.ts';

const declared = new Map<string, ReadonlySet<string>>([
  ['', new Set(['fast-check'])],
  ['packages/contract', new Set(['typebox'])],
  ['packages/core', new Set(['@levee/contract'])],
  ['packages/server', new Set(['@levee/contract', '@levee/core', 'pg'])],
  ['packages/edge', new Set(['@levee/core'])],
  ['packages/lab', new Set()],
  ['packages/cli', new Set(['@levee/server', '@levee/edge', '@levee/lab'])],
]);

const clean: Record<string, string> = {
  'packages/contract/src/errors.ts': `import { Type } from 'typebox';\nexport const a = Type;\n`,
  'packages/core/src/rule.ts': `import type { E } from '@levee/contract/errors.ts';\n// async Date.now()\nexport const s = 'await Math.random()';\n`,
  'packages/server/src/store/rows.ts': `import pg from 'pg';\nimport '@levee/core/rule.ts';\n`,
  'packages/server/src/commands/create.ts': `import { x } from '../store/rows.ts';\n`,
  'packages/server/src/http/routes.ts': `import { y } from '../commands/create.ts';\n`,
  'packages/server/src/agents/stream.ts': `import { x } from '../store/rows.ts';\n`,
  'packages/server/src/main.ts': `import { r } from './http/routes.ts';\nimport { s } from './agents/stream.ts';\n`,
  'packages/edge/src/main.ts': `import '@levee/core/rule.ts';\nimport { connect } from 'node:net';\n`,
  'packages/lab/src/demo.ts': `import { spawn } from 'node:child_process';\n`,
  'packages/cli/src/levee.ts': `import '@levee/server/main.ts';\nconst edge = await import('@levee/edge/main.ts');\n`,
  'e2e/start.test.ts': `import '@levee/server/main.ts';\nimport fc from 'fast-check';\n`,
};

function violationsWith(file: string, source: string): string[] {
  const tree: Tree = { sources: new Map(Object.entries({ ...clean, [file]: source })), declared };
  return findViolations(tree).map((violation) => `${violation.file}:${violation.line} ${violation.message}`);
}

describe('the direction check', () => {
  test('lets the allowed directions through', () => {
    assert.deepEqual(violationsWith('packages/lab/src/extra.ts', 'export {};\n'), []);
  });

  const planted: [string, string, string, RegExp][] = [
    [
      'contract on core',
      'packages/contract/src/errors.ts',
      `import '@levee/core/rule.ts';`,
      /contract must not import core/,
    ],
    [
      'core on server',
      'packages/core/src/x.ts',
      `\nimport { x } from '@levee/server/main.ts';`,
      /x\.ts:2 core must not/,
    ],
    [
      'core on edge by a path',
      'packages/core/src/x.ts',
      `import '../../edge/src/main.ts';`,
      /core must not import edge/,
    ],
    [
      'server on edge',
      'packages/server/src/main.ts',
      `import type { E } from '@levee/edge/main.ts';`,
      /must not import edge/,
    ],
    [
      'edge on server, late',
      'packages/edge/src/x.ts',
      `await import('@levee/server/main.ts');`,
      /edge must not import server/,
    ],
    ['lab on core', 'packages/lab/src/demo.ts', `import '@levee/core/rule.ts';`, /lab must not import core/],
    [
      'store on commands',
      'packages/server/src/store/x.ts',
      `import { y } from '../commands/create.ts';`,
      /store must not import/,
    ],
    [
      'store on http',
      'packages/server/src/store/x.ts',
      `import '@levee/server/http/routes.ts';`,
      /store must not import/,
    ],
    [
      'agents on http',
      'packages/server/src/agents/x.ts',
      `import '../http/routes.ts';`,
      /agents must not import server\/http/,
    ],
    [
      'agents on commands',
      'packages/server/src/agents/x.ts',
      `import '../commands/create.ts';`,
      /agents must not import/,
    ],
    [
      'commands on http',
      'packages/server/src/commands/x.ts',
      `import '../http/routes.ts';`,
      /commands must not import/,
    ],
    [
      'a re-export',
      'packages/core/src/x.ts',
      `export { main } from '@levee/server/main.ts';`,
      /core must not import server/,
    ],
    [
      'a list over lines',
      'packages/core/src/x.ts',
      `import {\n  a,\n  b,\n} from '@levee/edge/main.ts';`,
      /core must not import/,
    ],
    ['an undeclared package', 'packages/edge/src/x.ts', `import pg from 'pg';`, /does not declare pg/],
    [
      'an undeclared sibling',
      'packages/edge/src/x.ts',
      `import '@levee/contract/errors.ts';`,
      /does not declare @levee\/contract/,
    ],
    [
      'a test tool in a program',
      'packages/edge/src/x.ts',
      `import fc from 'fast-check';`,
      /does not declare fast-check/,
    ],
    ['a missing file', 'packages/edge/src/x.ts', `import './gone.ts';`, /does not exist/],
    ['a package on e2e', 'packages/edge/src/x.ts', `import '../../../e2e/start.test.ts';`, /outside the packages/],
    ['files in core', 'packages/core/src/x.ts', `import { readFileSync } from 'node:fs';`, /core is pure/],
    [
      'random bytes in core',
      'packages/core/src/x.ts',
      `import { randomFillSync } from 'node:crypto';`,
      /must not take randomFillSync/,
    ],
    ['async in core', 'packages/core/src/x.ts', `export async function f() {}`, /asynchronous code/],
    ['a clock in core', 'packages/core/src/x.ts', 'export const t = `at $'.concat('{Date.now()}`;'), /a clock/],
    ['new Date in core', 'packages/core/src/x.ts', 'export const t = () => new Date();', /a clock/],
    ['randomness in core', 'packages/core/src/x.ts', 'export const n = () => Math.random();', /randomness/],
    ['a timer in core', 'packages/core/src/x.ts', 'setTimeout(() => {}, 5);', /a timer/],
  ];
  for (const [what, file, source, expected] of planted) {
    test(`finds ${what}`, () => {
      const found = violationsWith(file, `${source}\n`);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', expected);
    });
  }

  test('finds a circle once, and not one of types alone', () => {
    const sources = new Map(Object.entries(clean));
    sources.set('packages/lab/src/a.ts', `import { b } from './b.ts';\n`);
    sources.set('packages/lab/src/b.ts', `import { a } from './a.ts';\n`);
    const message = 'imports itself in a circle: packages/lab/src/a.ts → packages/lab/src/b.ts → packages/lab/src/a.ts';
    assert.deepEqual(findViolations({ sources, declared }), [{ file: 'packages/lab/src/a.ts', line: 1, message }]);
    sources.set('packages/lab/src/b.ts', `import type { a } from './a.ts';\n`);
    assert.deepEqual(findViolations({ sources, declared }), []);
  });

  test('finds nothing in this repository, and has really read it', () => {
    const tree = readTree(join(import.meta.dirname, '..'));
    assert.ok(tree.sources.size > 20, `${tree.sources.size} sources read`);
    assert.deepEqual(findViolations(tree), []);
  });
});
