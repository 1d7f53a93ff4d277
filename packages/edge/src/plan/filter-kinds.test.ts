import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { isFilter } from '@levee/core/filter/entry.ts';
import { type Compiler, createCompiler } from '@levee/core/nftables/compiler.ts';
import type { NftResult } from '../drivers/nft/port.ts';
import { dnsKind, filterOf } from '../testing/filters.ts';
import { ruleOf } from '../testing/rules.ts';
import { understand } from './desired.ts';
import { tryFilterKinds, untriedKinds } from './filter-kinds.ts';

const entryOf = (wire: Parameters<typeof understand>[0]) => {
  const understood = understand(wire);
  assert.ok(understood.ok);
  return understood.entry;
};
const all = filterKinds.map(({ id }) => `filter:${id}`);

/** Of the filter by which a kind is tried. */
const sampleChain = (kind: number, family: number): string =>
  `f_discard_00000000000040008000${(kind * 10 + family).toString(16).padStart(12, '0')}`;

async function tried(judge: (text: string) => NftResult, newCompiler: () => Compiler = createCompiler) {
  const checks: string[] = [];
  const kinds = await tryFilterKinds(
    {
      async check(text) {
        checks.push(text);
        return judge(text);
      },
    },
    newCompiler,
  );
  return { kinds, checks };
}

test('a kernel that takes every kind is asked once', async () => {
  const { kinds, checks } = await tried(() => ({ ok: true, output: '' }));
  assert.deepEqual(kinds.capabilities, all);
  assert.equal(checks.length, 1);
});

test('a kind that the kernel refuses is found among the others; its filters fail with the kind and the reason', async () => {
  const { kinds, checks } = await tried((text) =>
    text.includes(sampleChain(dnsKind, 4))
      ? { ok: false, message: 'Error: Could not process rule: No such file or directory\nadd rule …\n' }
      : { ok: true, output: '' },
  );
  assert.equal(checks.length, 1 + filterKinds.length);
  assert.deepEqual(
    kinds.capabilities,
    all.filter((capability) => capability !== `filter:${dnsKind}`),
  );
  assert.equal(
    kinds.obstacle(entryOf(filterOf(1))),
    "this router's kernel lacks what filters of kind dns (22) need: the kernel refuses it: No such file or directory",
  );
  const other = filterKinds.find((kind) => kind.id !== dnsKind && kind.destinationPorts !== 'required');
  assert.ok(other);
  assert.equal(kinds.obstacle(entryOf(filterOf(1, { filter: other.id }))), undefined);
  assert.equal(kinds.obstacle(entryOf(ruleOf(1))), undefined);
});

test('a kind that cannot be compiled is left out, and the others are tried', async () => {
  const broken = (): Compiler => {
    const compiler = createCompiler();
    return {
      ...compiler,
      replace(entries, mark) {
        const all = [...entries];
        if (all.some((entry) => isFilter(entry) && entry.kind.id === dnsKind)) throw new RangeError('too far');
        return compiler.replace(all, mark);
      },
    };
  };
  const { kinds, checks } = await tried(() => ({ ok: true, output: '' }), broken);
  assert.deepEqual(
    kinds.capabilities,
    all.filter((capability) => capability !== `filter:${dnsKind}`),
  );
  assert.equal(checks.length, 1);
  assert.equal(kinds.obstacle(entryOf(filterOf(1))), 'filters of kind dns (22) cannot be compiled: too far');
});

test('a machine that is out of memory says nothing about any kind', async () => {
  const { kinds } = await tried(() => ({
    ok: false,
    message: 'Error: Could not process rule: Cannot allocate memory',
  }));
  assert.deepEqual(kinds.capabilities, all);
});

test('without a kernel nothing is claimed', () => {
  assert.deepEqual(untriedKinds.capabilities, []);
  assert.equal(untriedKinds.obstacle(entryOf(filterOf(1))), undefined);
});

test('each kind has its part in what tells tables of another meaning apart, for each of its families', async () => {
  const { meaning } = (await tried(() => ({ ok: true, output: '' }))).kinds;
  assert.equal(meaning, (await tried(() => ({ ok: false, message: 'Error: no\n' }))).kinds.meaning);
  for (const { id, families } of filterKinds) {
    for (const family of families) {
      assert.ok(meaning.includes(sampleChain(id, family)), `${id} ${family}`);
    }
  }
});
